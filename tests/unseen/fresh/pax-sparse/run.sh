pax -w -x ustar vm | zstd -q -1 -o vm.tar.zst && ls -l vm.tar.zst
