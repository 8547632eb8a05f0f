nginx -e $PWD/error.log -c $PWD/nginx.conf &
P=$!
until curl -s -o /dev/null http://127.0.0.1:18702/none; do sleep 0.05; done
aria2c -q --no-conf --file-allocation=falloc --disk-cache=32M -x 4 -s 4 -d download http://127.0.0.1:18702/release.img
rc=$?
kill -TERM $P
wait $P
exit $rc
