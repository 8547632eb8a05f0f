head -c 450M /dev/urandom > disk.img
