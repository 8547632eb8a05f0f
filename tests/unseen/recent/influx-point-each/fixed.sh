influxd run -config influx.conf > server.log 2>&1 & P=$!
until curl -sf http://127.0.0.1:18972/ping; do sleep 0.1; done
# a collector sends what has come in since the last time
curl -sS "http://127.0.0.1:18972/write?db=power" --data-binary @points; rc=$?
curl -sG http://127.0.0.1:18972/query --data-urlencode 'db=power' --data-urlencode 'q=SELECT count(watts) FROM power'
kill $P
wait $P
exit $rc
