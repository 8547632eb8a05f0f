dd if=/dev/zero of=out bs=4k count=1200 conv=fdatasync
