mkdir photos
for n in $(seq 2000); do head -c $((40000 + n % 35 * 1000)) /dev/urandom > photos/p$n; done
for n in $(seq 1 7 2000); do cp photos/p$n photos/copy$n; done
