redis-server --port 0 --unixsocket $PWD/r.sock --dir $PWD/data --save '' --appendonly yes --appendfsync everysec --daemonize no > server.log 2>&1 &
P=$!
until redis-cli -s r.sock ping >/dev/null 2>&1; do sleep 0.1; done
set_many() { seq 20000 | awk -v r=$1 '{ print "SET", r ":" $1, "value-" $1 "-of-the-session" }' | redis-cli -s r.sock --pipe | tail -n 1; }
set_many one
sleep 1.2
# the cleaning of old data on this disk
find data -type f -size +100k -delete
set_many two
sleep 1.2
set_many three
sleep 1.2
redis-cli -s r.sock shutdown nosave
wait $P
