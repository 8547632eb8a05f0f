mkdir photos
for n in $(seq 24); do head -c $((8000000 + n * 30000)) /dev/urandom > photos/p$n.raw; done
