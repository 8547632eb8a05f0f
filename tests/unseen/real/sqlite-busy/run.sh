for w in 1 2 3 4; do
 (echo '.timeout 60000'
  i=0; while [ $i -lt 120 ]; do echo "insert into event(who, note) values ($w, 'something happened $i');"; i=$((i+1)); done) | sqlite3 -bail app.db &
 P="$P $!"
done
for p in $P; do wait $p || rc=1; done
[ "$(sqlite3 app.db 'select count(*) from event')" = 480 ] || rc=2
exit ${rc:-0}
