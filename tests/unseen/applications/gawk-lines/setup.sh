seq -f %019.0f 1 100000 > in
