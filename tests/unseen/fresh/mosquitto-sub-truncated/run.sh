/usr/sbin/mosquitto -c mosquitto.conf 2> mosquitto.log & P=$!
until mosquitto_pub -p 18833 -t up -m 1 2>/dev/null; do sleep 0.05; done
mosquitto_sub -p 18833 -i log -q 1 -t doors -C 12000 -W 30 > events.log & S=$!
sleep 0.3
wrote() { n=0; until [ $(stat -c %s events.log) -ge $1 ] || [ $n -ge 60 ]; do sleep 0.1; n=$((n + 1)); done; }
mosquitto_pub -p 18833 -q 1 -t doors -l < part
wrote 150000
# the weekly job keeps a copy and empties the log
cp events.log events.log.1 && truncate -s 0 events.log
mosquitto_pub -p 18833 -q 1 -t doors -l < part
mosquitto_pub -p 18833 -q 1 -t doors -l < part
wait $S; rc=$?
kill -TERM $P
wait $P
stat -c '%s bytes, %b blocks' events.log
exit $rc
