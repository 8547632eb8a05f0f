# one line of the report for a scan: name, packed size, sum
exec 9>>report.csv
[ "$LATE" ] || flock 9
packed=$(bzip2 -c "$1" | tee "$1.bz2" | wc -c)
sum=$(sha256sum < "$1.bz2")
[ -z "$LATE" ] || flock 9
echo "$1,$packed,${sum%% *}" >&9
