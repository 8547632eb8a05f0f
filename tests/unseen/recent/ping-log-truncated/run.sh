# watches the link; the log is turned by logrotate
ping -i 0.002 127.0.0.1 > ping.log & P=$!
sleep 1.5
/usr/sbin/logrotate -s state rotate.conf
sleep 1.5
kill -INT $P
wait $P
ls -l ping.log*
