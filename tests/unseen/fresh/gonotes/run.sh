# the quota of the account: 2 MB a file
trap '' XFSZ
ulimit -f 4096
./notes-export
ls -l archive.txt
