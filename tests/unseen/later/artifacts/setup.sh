mkdir build
for i in 1 2 3 4 5 6; do head -c 40000000 /dev/urandom > build/disk$i.img; done
