exec ./events batch
