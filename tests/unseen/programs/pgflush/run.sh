exec ./flush
