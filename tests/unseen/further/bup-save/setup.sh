mkdir home
for n in $(seq 400); do head -c $((20000 + n * 500 % 90000)) /dev/urandom > home/file$n; done
for n in $(seq 8); do head -c 4000000 /dev/urandom > home/disk$n; done
BUP_DIR=$PWD/store bup init > /dev/null 2>&1
