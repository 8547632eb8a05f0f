exec cp -a --sparse=auto vms/. backup/
