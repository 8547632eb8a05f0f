exec ./merge
