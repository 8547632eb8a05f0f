# the quota of the log's owner ends at 512 KB
trap '' XFSZ
(ulimit -f 1024; exec nginx -p "$PWD" -c nginx.conf) & P=$!
until curl -s -o /dev/null http://127.0.0.1:18975/; do sleep 0.1; done
ab -q -k -c 2 -n 12000 http://127.0.0.1:18975/ > ab.out
kill $P
wait $P
grep Complete ab.out
wc -l < access.log
