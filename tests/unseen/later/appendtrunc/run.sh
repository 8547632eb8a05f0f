# the supervisor appends the worker's output to its log; rotation copies and empties it
php -n worker.php >> worker.log &
P=$!
for n in 1 2 3; do
    sleep 0.25
    cp worker.log worker.log.$n
    : > worker.log
done
wait $P
wc -c worker.log*
