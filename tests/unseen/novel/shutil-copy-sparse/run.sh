/usr/bin/python3 -c 'import shutil; shutil.copy2("vm.img", "vm-backup.img")'
du -k vm.img vm-backup.img
