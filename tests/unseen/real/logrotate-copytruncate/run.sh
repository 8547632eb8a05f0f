python3 writer.py app.log w &
W=$!
sleep 2
logrotate -f -s $PWD/lr.state lr.conf || rc=1
wait $W || rc=2
exit ${rc:-0}
