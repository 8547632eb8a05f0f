exec ./load
