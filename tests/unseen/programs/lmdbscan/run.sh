exec ./scan
