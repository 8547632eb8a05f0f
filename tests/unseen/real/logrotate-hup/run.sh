python3 writer.py app.log a reopen &
W=$!
echo $W > w.pid
sleep 1.5
logrotate -f -s $PWD/lr.state lr.conf || rc=1
sleep 1.5
logrotate -f -s $PWD/lr.state lr.conf || rc=1
wait $W || rc=2
exit ${rc:-0}
