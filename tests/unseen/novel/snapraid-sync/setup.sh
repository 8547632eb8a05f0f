mkdir -p disk1 disk2 parity
for d in 1 2; do for n in $(seq 60); do head -c $((n * 20000)) /dev/urandom > disk$d/movie$n; done; done
cat > snapraid.conf <<C
parity $PWD/parity/snapraid.parity
content $PWD/snapraid.content
content $PWD/parity/snapraid.content
data d1 $PWD/disk1/
data d2 $PWD/disk2/
C
