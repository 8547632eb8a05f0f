gearmand -p 18973 -L 127.0.0.1 -l "$PWD/gearmand.log" -q libsqlite3 --libsqlite3-db="$PWD/queue.db" & P=$!
until gearadmin -h 127.0.0.1 -p 18973 --getpid > server.pid 2> /dev/null; do sleep 0.1; done
# no worker is up at night: the jobs wait in the queue
gearman -h 127.0.0.1 -p 18973 -b -n -f resize < joblist > handles
gearadmin -h 127.0.0.1 -p 18973 --status
kill $P
wait $P
