busybox httpd -f -p 127.0.0.1:18961 -h www & P=$!
until curl -sI http://127.0.0.1:18961/image1.iso > answer; do sleep 0.1; done
rc=0
for round in $(seq 20); do
  for n in 1 2 3; do
    curl -sf -o /dev/null http://127.0.0.1:18961/image$n.iso || rc=1
  done
done
kill $P
wait $P
exit $rc
