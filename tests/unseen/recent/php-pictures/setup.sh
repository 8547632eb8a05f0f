mkdir pictures
for n in $(seq 2500); do head -c $((n * 16 + 20000)) /dev/urandom > pictures/$n.jpg; done
