head -c 640M /dev/urandom > volume
