mkdir incoming
for n in $(seq 40); do head -c 100000 /dev/urandom > incoming/$n.tar; done
