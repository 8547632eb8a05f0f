exec ./queue batch
