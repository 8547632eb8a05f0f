mkdir music stick
for n in $(seq 160); do head -c 200000 /dev/urandom > music/track$n.ogg; done
