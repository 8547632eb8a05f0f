PHP_CLI_SERVER_WORKERS=4 php -n -d session.save_path=$PWD/sessions -d session.save_handler=files -d session.gc_probability=0 -S 127.0.0.1:18991 -t . > server.log 2>&1 &
P=$!
until curl -s -o /dev/null http://127.0.0.1:18991/none; do sleep 0.05; done
# a page of the shop loads its parts in parallel, all with the visitor's session
for part in 1 2 3 4; do
    curl -s -b PHPSESSID=visitor1 'http://127.0.0.1:18991/page.php?n=[1-8]' > part$part &
    C="$C $!"
done
wait $C
kill -TERM $(pgrep -P $P) $P; wait $P 2>/dev/null
sort -n -k 2 part? | tail -n 1
