php store.php & P=$!
php fetch.php whole; rc=$?
wait $P
exit $rc
