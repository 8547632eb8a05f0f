mkdir -p home/mail home/photos
for n in $(seq 1500); do head -c 3000 /dev/urandom | base64 > home/mail/$n; done
for n in $(seq 25); do head -c 3000000 /dev/urandom > home/photos/$n.jpg; done
