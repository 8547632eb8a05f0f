redis-server --dir $PWD --port 0 --unixsocket $PWD/r.sock --save '' --appendonly yes --appendfsync always > server.log 2>&1 &
P=$!
until [ "$(redis-cli -s r.sock ping 2>/dev/null)" = PONG ]; do sleep 0.1; done
redis-benchmark -s r.sock -c 1 -n 2000 -d 64 -r 100000 -t set -q; rc=$?
redis-cli -s r.sock shutdown; wait $P
exit $rc
