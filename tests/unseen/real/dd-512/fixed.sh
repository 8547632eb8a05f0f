dd if=/dev/zero of=out bs=64k count=11719
