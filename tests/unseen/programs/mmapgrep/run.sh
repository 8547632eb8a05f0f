exec ./grep
