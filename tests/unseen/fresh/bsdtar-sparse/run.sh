mkdir out && bsdtar -cf vm.tar vm && bsdtar -xSf vm.tar -C out && ls -ls out/vm
