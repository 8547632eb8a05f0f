cp -p --reflink=never vm.img vm-backup.img
du -k vm.img vm-backup.img
