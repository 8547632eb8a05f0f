python3 service.py &
P=$!
sleep 1
# the debug lines fill the disk
sed -i '/debug:/d' service.log
sync service.log
wait $P
wc -l < service.log
