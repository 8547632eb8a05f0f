etcd --name one --data-dir data --listen-client-urls http://127.0.0.1:23790 --advertise-client-urls http://127.0.0.1:23790 \
    --listen-peer-urls http://127.0.0.1:23800 --initial-advertise-peer-urls http://127.0.0.1:23800 \
    --initial-cluster one=http://127.0.0.1:23800 --log-level error > server.log 2>&1 &
P=$!
until curl -sf http://127.0.0.1:23790/health | grep -q true; do sleep 0.1; done
python3 import.py
rc=$?
kill -TERM $P
wait $P 2>/dev/null
exit $rc
