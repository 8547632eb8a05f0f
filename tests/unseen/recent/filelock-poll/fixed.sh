pids=
for stage in extract clean join export; do
  /usr/bin/python3 waiting.py $stage & pids="$pids $!"
done
for p in $pids; do wait "$p" || exit 1; done
wc -l manifest.jsonl
