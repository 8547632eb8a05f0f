nginx -p $PWD -c nginx.conf -e error.log &
P=$!
sleep 0.5
for i in 1 2 3 4; do curl -sf http://127.0.0.1:18980/big | wc -c || rc=1; done
kill -QUIT $P; wait $P
exit ${rc:-0}
