etcd --name one --data-dir data --listen-client-urls http://127.0.0.1:23791 --advertise-client-urls http://127.0.0.1:23791 \
    --listen-peer-urls http://127.0.0.1:23801 --initial-advertise-peer-urls http://127.0.0.1:23801 \
    --initial-cluster one=http://127.0.0.1:23801 --log-level error --max-txn-ops 2000 > server.log 2>&1 &
P=$!
until curl -sf http://127.0.0.1:23791/health | grep -q true; do sleep 0.1; done
python3 import.py
rc=$?
kill -TERM $P
wait $P 2>/dev/null
exit $rc
