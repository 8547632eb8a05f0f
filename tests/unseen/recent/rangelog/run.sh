exec ./rangelog
