tar -S -cf - vm.img | zstd -q -1 > vm.tar.zst
