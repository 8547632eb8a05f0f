# turns the logs of the machines into CSV
mkdir -p csv
for f in logs/*.log; do
    b=$(basename "$f" .log)
    host=$(head -n 1 "$f" | cut -d' ' -f2)
    sed "s/ /,/g; s/^/$host,/" "$f" > "csv/$b.csv"
done
cat csv/*.csv | wc -l
