tar -S -cf - vm.img | zstd -q -1 -T2 -f -o vm.tar.zst || exit 1
ls -l vm.tar.zst
