/usr/sbin/mosquitto -c mosquitto.conf & P=$!
until mosquitto_pub -p 18830 -t up -m 1 2>/dev/null; do sleep 0.05; done
# a reader that is away keeps its messages
mosquitto_sub -p 18830 -i reader -c -q 1 -t 'meters/#' -E
mosquitto_pub -p 18830 -q 1 -l -t meters/all < now; rc=$?
kill -TERM $P
wait $P
ls -l store
exit $rc
