# a collector of log lines; a cron job packs the log and removes it
mkfifo in.pipe
socat -u PIPE:in.pipe OPEN:collected.log,creat,append & P=$!
exec 9> in.pipe
lines() { awk -v n=$1 'BEGIN { for (i = 0; i < 60000; i++) printf "%d host%d request %d\n", n, i % 9, i }'; }
lines 1 >&9
sleep 0.5
gzip -c collected.log > day1.gz && rm collected.log
lines 2 >&9
exec 9>&-
wait $P
ls collected.log 2> /dev/null || echo 'the lines of the second day are gone'
