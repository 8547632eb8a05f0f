export HOME=$PWD MH=$PWD/profile PATH=/usr/bin/mh:$PATH
inc -silent -notruncate -file inbox.mbox +inbox
ls Mail/inbox | wc -l
