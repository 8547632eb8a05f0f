redis-server --port 0 --unixsocket $PWD/r.sock --dir $PWD/data --save '' --appendonly no --daemonize no > server.log 2>&1 &
P=$!
until redis-cli -s r.sock ping >/dev/null 2>&1; do sleep 0.1; done
seq 200000 | awk '{ print "SET", "session:" $1, "value-" $1 * 7919 "-of-the-session" }' | redis-cli -s r.sock --pipe | tail -n 1
redis-cli -s r.sock bgsave
sleep 0.3
while redis-cli -s r.sock info persistence | grep -q rdb_bgsave_in_progress:1; do sleep 0.2; done
redis-cli -s r.sock shutdown nosave
wait $P
