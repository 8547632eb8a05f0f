exec ./index
