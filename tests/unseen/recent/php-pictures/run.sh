php store.php & P=$!
php fetch.php; rc=$?
wait $P
exit $rc
