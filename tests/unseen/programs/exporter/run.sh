exec ./export
