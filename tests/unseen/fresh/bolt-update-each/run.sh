exec ./queue
