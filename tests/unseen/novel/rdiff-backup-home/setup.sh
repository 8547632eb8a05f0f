mkdir home
for d in $(seq 30); do mkdir home/d$d; for n in $(seq 30); do head -c $((n * 100)) /dev/urandom > home/d$d/f$n; done; done
