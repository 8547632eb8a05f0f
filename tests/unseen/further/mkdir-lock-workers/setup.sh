echo 1 > counter
