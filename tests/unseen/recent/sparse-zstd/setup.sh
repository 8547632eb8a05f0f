truncate -s 3G vm.img
for at in 0 700 1400 2100 2900; do dd if=/dev/urandom of=vm.img bs=1M count=3 seek=$at conv=notrunc status=none; done
