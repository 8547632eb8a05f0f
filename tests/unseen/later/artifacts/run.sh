exec ./publish release
