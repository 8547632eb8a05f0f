truncate -s 1G disk.img
head -c 700000000 /dev/urandom > source.img
truncate -s 1G source.img
