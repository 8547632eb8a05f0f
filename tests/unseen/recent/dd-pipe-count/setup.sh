for n in 1 2 3 4 5 6; do head -c 45000000 /dev/urandom | gzip -1 > volume$n.gz; done
