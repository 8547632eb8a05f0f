head -c 60000000 /dev/urandom > volume.img
truncate -s 61440000 volume.img
