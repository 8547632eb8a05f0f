head -c 280000000 /dev/urandom > tiles.bin
