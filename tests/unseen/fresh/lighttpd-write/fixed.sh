sed -i "s/\"write\"/\"sendfile\"/" lighttpd.conf
/usr/sbin/lighttpd -D -f lighttpd.conf & P=$!
until curl -sI http://127.0.0.1:18831/release.iso > head; do sleep 0.05; done
rc=0
for n in 1 2 3 4 5 6 7 8; do curl -sf -o /dev/null http://127.0.0.1:18831/release.iso || rc=1; done
kill -INT $P
wait $P
exit $rc
