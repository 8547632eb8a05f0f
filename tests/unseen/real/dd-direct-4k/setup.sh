head -c 400M /dev/urandom > in
