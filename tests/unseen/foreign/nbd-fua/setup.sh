truncate -s 256M disk.img
