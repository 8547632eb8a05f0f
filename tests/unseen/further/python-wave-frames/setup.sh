head -c 40000000 /dev/urandom > capture.raw
