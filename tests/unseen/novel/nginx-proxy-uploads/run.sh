nginx -p "$PWD" -c nginx.conf & P=$!
until curl -s -o /dev/null http://127.0.0.1:18971/; do sleep 0.1; done
ab -q -k -c 4 -n 8000 -p body -T application/octet-stream http://127.0.0.1:18971/upload > ab.out; rc=$?
kill $P
wait $P
grep -E 'Failed|Requests per' ab.out
exit $rc
