export HOME=$PWD TMPDIR=$PWD/spool
fdm -u $(id -un) -q -f $PWD/fdm.conf fetch
ls Maildir/new | wc -l
[ $(ls Maildir/new | wc -l) = 600 ]
