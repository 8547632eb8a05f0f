./serve & P=$!
until curl -s -o /dev/null http://127.0.0.1:18976/f1.jpg; do sleep 0.1; done
for n in 1 3 5 8; do ab -q -k -c 4 -n 2000 http://127.0.0.1:18976/f$n.jpg | grep Failed; done
kill $P
wait $P
exit 0
