rsyslogd -n -f $PWD/rs.conf -i $PWD/rs.pid &
P=$!
until [ -S log.sock ]; do sleep 0.1; done
logger -u log.sock -d -t app -f msgs; rc=$?
sleep 1
kill -TERM $P; wait $P
[ $(grep -c answered app.log) -eq $(wc -l < msgs) ] || rc=3
exit $rc
