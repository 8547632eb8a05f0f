truncate -s 700M vm.img
for n in 1 50 100 300 500; do dd if=/dev/urandom of=vm.img bs=1M count=3 seek=$n conv=notrunc status=none; done
