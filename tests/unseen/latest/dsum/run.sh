exec ./dsum volume
