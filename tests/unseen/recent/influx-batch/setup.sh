cat > influx.conf <<C
reporting-disabled = true
bind-address = "127.0.0.1:18971"
[meta]
  dir = "$PWD/meta"
  logging-enabled = false
[data]
  dir = "$PWD/data"
  wal-dir = "$PWD/wal"
  query-log-enabled = false
[http]
  bind-address = "127.0.0.1:18972"
  log-enabled = false
[monitor]
  store-enabled = false
C
awk 'BEGIN { for (n = 0; n < 150000; n++) printf "power,house=h%d watts=%d %d000000000\n", n % 50, n * 37 % 3000, 1700000000 + n }' > points
influxd run -config influx.conf > server.log 2>&1 & P=$!
until curl -sf -XPOST http://127.0.0.1:18972/query --data-urlencode 'q=CREATE DATABASE power'; do sleep 0.2; done
kill $P
wait $P
