mkdir media
for n in $(seq 6); do head -c 60000000 /dev/urandom > media/clip$n.mp4; done
