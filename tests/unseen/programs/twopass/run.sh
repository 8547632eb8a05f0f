exec ./twopass
