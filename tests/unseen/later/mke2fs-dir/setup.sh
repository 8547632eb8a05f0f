mkdir -p root/etc root/usr/lib root/data
for i in $(seq 400); do seq $i $((i + 300)) > root/etc/conf$i; done
for i in 1 2 3 4 5 6 7 8; do head -c 25000000 /dev/urandom > root/usr/lib/lib$i.so; done
ln -s lib1.so root/usr/lib/lib.so
