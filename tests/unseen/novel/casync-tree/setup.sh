mkdir tree
for d in $(seq 20); do mkdir tree/d$d; for n in $(seq 40); do head -c $((n * 1200)) /dev/urandom > tree/d$d/f$n; done; done
