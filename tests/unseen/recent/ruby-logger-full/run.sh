# no file of this account may grow beyond 200 KB
trap '' XFSZ
ulimit -f 400
ruby intake.rb 2> /dev/null; rc=$?
wc -l orders.log
exit $rc
