nbdkit -f -U $PWD/nbd.sock --pidfile nbd.pid file disk.img &
P=$!
until [ -s nbd.pid ]; do sleep 0.05; done
/usr/bin/python3 - <<'S'
import nbd

h = nbd.NBD()
h.connect_uri("nbd+unix:///?socket=nbd.sock")
for n in range(5000):
    h.pwrite(b"entry %8d of the ring of events".ljust(512) % n, 512 * n, nbd.CMD_FLAG_FUA)
h.shutdown()
S
rc=$?
kill -TERM $P
wait $P
exit $rc
