/usr/sbin/named -f -n 1 -c $PWD/named.conf > named.out 2>&1 &
P=$!
until grep -q 'running$' named.log; do sleep 0.05; done
nsupdate updates
rc=$?
dig -p 15353 @127.0.0.1 +short host600.dyn.test | grep . || rc=3
kill -TERM $P
wait $P
exit $rc
