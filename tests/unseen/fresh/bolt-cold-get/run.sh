exec ./sessions
