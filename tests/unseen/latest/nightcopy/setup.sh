head -c 400M /dev/urandom > volume
head -c 64M /dev/urandom > table
