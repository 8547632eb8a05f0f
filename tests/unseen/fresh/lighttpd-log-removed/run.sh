/usr/sbin/lighttpd -D -f lighttpd.conf & P=$!
until curl -sI http://127.0.0.1:18834/part1.bin > head; do sleep 0.05; done
curl -sf -K urls || exit 1
sleep 1.2
# make room: what is in the log is packed, and nobody tells the server
gzip -c logs/access.log > logs/access.log.1.gz && rm logs/access.log
curl -sf -K urls; rc=$?
sleep 1.2
kill -INT $P
wait $P
ls -l logs
exit $rc
