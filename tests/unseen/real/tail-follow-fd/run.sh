# the application logs; rotation renames its file, and only after a second it reopens
echo start > app.log
tail -n +1 -f app.log > seen 2>/dev/null &
T=$!
app() { i=0; while [ $i -lt 60 ]; do echo "$1 $i"; sleep 0.02; i=$((i+1)); done; }
(
 exec 3>> app.log
 app before >&3
 mv app.log app.log.1
 app late >&3
 exec 3>> app.log
 app after >&3
)
sleep 1.5
kill $T
wc -l seen app.log app.log.1
