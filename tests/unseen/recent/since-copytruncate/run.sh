# the mail of each night: what is new in the log since the night before
mkdir state
line() { awk -v d="$1" -v n="$2" 'BEGIN { for (i = 0; i < n; i++) printf "day %d event %06d of the gateway\n", d, i }' >> gateway.log; }
total=0
day=1
for lines in 4000 3000 9000 2000 8000 1000; do
  line $day $lines
  since -s "$PWD/state/since" gateway.log > "mail.$day" 2> /dev/null
  sleep 0.1
  # logrotate with copytruncate
  cp gateway.log gateway.log.1
  : > gateway.log
  day=$((day + 1))
done
cat mail.* | wc -l
