exec ./server
