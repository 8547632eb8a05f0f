exec ./lookup
