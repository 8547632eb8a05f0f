nbdkit -f -U $PWD/nbd.sock --pidfile nbd.pid file disk.img &
P=$!
until [ -s nbd.pid ]; do sleep 0.05; done
nbdcopy --flush source.img "nbd+unix:///?socket=nbd.sock"
rc=$?
kill -TERM $P
wait $P
exit $rc
