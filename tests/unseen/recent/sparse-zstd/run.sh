# the nightly copy of the disk of the machine
zstd -q -1 -T2 -f -o vm.img.zst vm.img || exit 1
ls -l vm.img.zst
