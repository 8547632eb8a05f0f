head -c 256M /dev/urandom > column.bin
