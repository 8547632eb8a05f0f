exec ./fetch
