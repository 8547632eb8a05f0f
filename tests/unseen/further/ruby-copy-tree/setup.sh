mkdir -p site/a site/b
for n in $(seq 300); do head -c 60000 /dev/urandom > site/a/$n.html; done
for n in $(seq 6); do head -c 40000000 /dev/urandom > site/b/$n.mp4; done
