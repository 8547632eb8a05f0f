mkdir files; for n in $(seq 8); do head -c $((n * 60000)) /dev/urandom > files/f$n.jpg; done
