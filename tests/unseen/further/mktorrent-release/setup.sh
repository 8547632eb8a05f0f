mkdir release
for n in $(seq 18); do head -c 25000000 /dev/urandom > release/part$n.bin; done
