truncate -s 1G vm.img
for at in 0 300 511 899; do head -c 4000000 /dev/urandom | dd of=vm.img bs=1M seek=$at conv=notrunc status=none; done
