for n in 1 2 3 4; do head -c 12000000 /dev/urandom > scan$n.tif; done
