dd if=/dev/zero of=out bs=1M count=600 conv=fsync
