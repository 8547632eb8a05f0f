exec ./events
