head -c 200000000 /dev/urandom > disk.img
