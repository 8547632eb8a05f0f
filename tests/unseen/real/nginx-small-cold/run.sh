nginx -p $PWD -c nginx.conf -e error.log &
P=$!
until curl -sf -o /dev/null http://127.0.0.1:18980/d0/f0; do sleep 0.1; done
curl -sf 'http://127.0.0.1:18980/d[0-39]/f[0-99]' | wc -c; rc=$?
kill -QUIT $P; wait $P
exit $rc
