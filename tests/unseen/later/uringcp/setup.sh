head -c 283115520 /dev/urandom > disk.img
