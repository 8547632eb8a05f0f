beanstalkd -l 127.0.0.1 -p 11390 -b binlog -f 50 -s 4000000 &
P=$!
/usr/bin/python3 put.py; rc=$?
kill -TERM $P; wait $P
exit $rc
