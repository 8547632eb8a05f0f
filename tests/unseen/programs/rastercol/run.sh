exec ./columns
