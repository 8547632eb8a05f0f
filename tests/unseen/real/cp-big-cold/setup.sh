head -c 700M /dev/urandom > in
