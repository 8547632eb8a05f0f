influxd run -config influx.conf > server.log 2>&1 & P=$!
until curl -sf http://127.0.0.1:18972/ping; do sleep 0.1; done
# the meters send each point on its own
curl -sS -K each; rc=$?
curl -sG http://127.0.0.1:18972/query --data-urlencode 'db=power' --data-urlencode 'q=SELECT count(watts) FROM power'
kill $P
wait $P
exit $rc
