dd if=/dev/zero of=out bs=512 count=1500000
