#!/usr/bin/env bash
# IOscope, table 2 and figures 3 to 6: an index is built over all documents of a store, by one process
# over all of them, by two that have half each ("shards") and read them in the order of their
# ids, and by these once more after each was written again in that order. Throughput, and the
# offsets of each; what recording costs the whole.
#
#   examples/papers/ioscope/shards.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin ioscope-shards "$@"
need file /usr/bin/python3 python3
python=/usr/bin/python3
scan=$root/examples/scan-order/scan.py
rows=${quick:+3000}
rows=${rows:-40000}
rounds=${quick:+1}
rounds=${rounds:-9}

"$python" "$scan" fill "$work/single.db" "$rows" >/dev/null
# As in the paper: 51 % of the data in one shard, 49 % in the other.
"$python" "$scan" fill "$work/shard1.db" $((rows * 51 / 100)) >/dev/null
"$python" "$scan" fill "$work/shard2.db" $((rows * 49 / 100)) >/dev/null

# Nothing of the files in memory.
forget() {
	local file
	for file in "$work"/*.db; do
		sync "$file"
		dd if="$file" iflag=nocache count=0 status=none
	done
}

# What is recorded: one process for each database.
cat >"$work/scans.sh" <<'SH'
python=$1 scan=$2 order=$3
shift 3
for file in "$@"; do "$python" "$scan" "$order" "$file" & done
wait
SH

experiment() {
	local session=$1
	shift
	forget
	record "$session" -- bash "$work/scans.sh" "$python" "$scan" "$@" >/dev/null
	# A read is of the documents: the first hundred bytes are the header.
	csv "$session" "
		WITH reads AS (
			SELECT path, ts_ns, dur_ns, ret, file_offset - lag(file_offset + ret) OVER (PARTITION BY path ORDER BY ts_ns) AS jump
			FROM syscalls WHERE syscall = 'pread64' AND path LIKE '%.db' AND ret > 100
		)
		SELECT '$session' AS experiment, replace(parse_filename(path), '.db', '') AS shard, count(*) AS reads,
			round(100 * count(*) FILTER (jump = 0) / count(*), 1) AS percent_continued,
			round(sum(ret) / 1048576 / ((max(ts_ns + dur_ns) - min(ts_ns)) / 1e9), 1) AS mib_per_s,
			(SELECT count(*) FROM block WHERE op = 'read' AND path = reads.path) AS device_reads
		FROM reads GROUP BY path ORDER BY shard" | tail -n +2
	csv "$session" "
		WITH reads AS (SELECT ts_ns, file_offset, replace(parse_filename(path), '.db', '') AS series,
			row_number() OVER (PARTITION BY path ORDER BY ts_ns) AS x FROM syscalls
			WHERE syscall = 'pread64' AND path LIKE '%.db' AND ret > 100)
		SELECT x, file_offset / 1048576 AS y, series FROM reads ORDER BY series, x" |
		figure dots "$(picture "$session")" --title "Offsets: $session" --x "request" --y "MiB of the file" >>"$work/pictures"
}

{
	echo "experiment,shard,reads,percent_continued,mib_per_s,device_reads"
	experiment single table "$work/single.db"
	experiment shards index "$work/shard1.db" "$work/shard2.db"
	for shard in 1 2; do "$python" "$scan" rebuild "$work/shard$shard.db" >/dev/null; done
	experiment rewritten index "$work/shard1.db" "$work/shard2.db"
} >"$work/table.csv"
heading "Throughput of each shard"
figure table <"$work/table.csv"
cat "$work/pictures"
cat <<'TEXT'

IOscope, MB/s on HDD and SSD: single server 48.4 and 306.7; two shards 25.5 and 11.8, 161.2 and 182.6;
another execution 47.8 and 30.6, 539.6 and 401.4. After each shard was written again: 1341 s to
108 s (12.4 times) on HDD, 89 s to 32 s (2.5 times) on SSD.
TEXT

# A scan of all documents that says how long it took, and its processor time.
cat >"$work/timed.sh" <<'SH'
TIMEFORMAT='%R %U %S'
{ time "$1" "$2" table "$3" >/dev/null; } 2>"$4"
SH
timed() { awk '{ printf "%s,%.3f", $1, $2 + $3 }' "$work/times"; }

heading "What recording costs"
{
	echo "tracing,seconds,cpu_seconds"
	for ((round = 0; round < rounds; round++)); do
		load=("$work/timed.sh" "$python" "$root/examples/scan-order/scan.py" "$work/single.db" "$work/times")
		forget
		bash "${load[@]}"
		echo "none,$(timed)"
		forget
		# Of the file only, as the paper's tool is used.
		record cost --path "$work/single.db" -- bash "${load[@]}"
		echo "fathom,$(timed)"
	done
} >"$work/rounds.csv"
figure medians seconds cpu_seconds <"$work/rounds.csv" | figure ratio seconds tracing none percent |
	figure ratio cpu_seconds tracing none cpu_percent | figure table
echo
echo "IOscope: less than 0.8 % more time."
where_sessions_are
