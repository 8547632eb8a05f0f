rsyslogd -n -f $PWD/rs.conf -i $PWD/rs.pid &
P=$!
until [ -S log.sock ]; do sleep 0.1; done
/usr/bin/python3 send.py; rc=$?
n=0
until [ $(cat logs/*.log | wc -l) -ge 60000 ] || [ $n -ge 30 ]; do sleep 0.3; n=$((n + 1)); done
kill -TERM $P; wait $P
[ $(cat logs/*.log | wc -l) -ge 60000 ] || rc=3
exit $rc
