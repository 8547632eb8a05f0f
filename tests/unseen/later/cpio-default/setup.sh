mkdir data
for i in 1 2 3 4 5 6 7 8; do head -c 30000000 /dev/urandom > data/volume$i; done
