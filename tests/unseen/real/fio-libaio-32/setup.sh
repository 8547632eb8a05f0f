head -c 1G /dev/urandom > data
