mariadbd --defaults-file=$PWD/my.cnf > mariadbd.log 2>&1 & P=$!
until mysqladmin --no-defaults -u root -S my.sock ping > /dev/null 2>&1; do sleep 0.2; done
php page.php $MODE; rc=$?
kill $P
wait $P
exit $rc
