#!/usr/bin/env bash
# IOscope, table 2 and figures 3 to 6, on WiredTiger, which is MongoDB's storage engine: documents in a table by
# record id, and an index from _id to record id, as MongoDB lays them out. All documents are read in the order of
# _id and in the order of the table, where they were inserted in random order of _id, where they were inserted
# in order, and after the collection was written again in order. Which blocks were read is compared with the
# blocks that WiredTiger itself lists. It is built from source, once, in 3 to 10 minutes.
#
#   examples/papers/ioscope/wiredtiger.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin ioscope-wiredtiger "$@"
need command python3 python3
need command swig swig
need command c++ g++
need command python3-config python3-dev

rows=${quick:+3000}
rows=${rows:-40000}
version=11.3.1

env=$(cache_dir)/wiredtiger-$version
if [ ! -e "$env/complete" ]; then
	rm -rf -- "$env"
	python3 -m venv "$env"
	logged "building WiredTiger $version" "$env/bin/pip" install -q --no-binary=wiredtiger "wiredtiger==$version" ||
		fail "WiredTiger could not be built" "the message of pip is above"
	: >"$env/complete"
fi
python=$env/bin/python
documents=$here/wiredtiger/documents.py

# Nothing of the files in memory.
forget() {
	local file
	for file in "$work"/*/*.wt; do
		sync "$file"
		dd if="$file" iflag=nocache count=0 status=none
	done
}

# scan SESSION ORDER COLLECTION
scan() {
	local session=$1 order=$2 collection=$work/$3
	forget
	record "$session" -- "$python" "$documents" "$order" "$collection" >"$work/$session.json"
	"$python" "$documents" blocks "$collection" >"$work/blocks"
	csv "$session" "SELECT file_offset, ret FROM syscalls WHERE syscall = 'pread64' AND path LIKE '%/collection.wt' AND ret > 0" |
		tail -n +2 >"$work/reads"
	# Leaf blocks that were read once, at their offset and with their size.
	local same
	same=$(sort "$work/reads" | uniq -u | sort | comm -12 - <(sort "$work/blocks") | wc -l)
	# What WiredTiger has counted itself. It does not count the first 4 KiB of a file, which name its version.
	local own
	own=$(sed -n 's/.*"block_bytes_read": \([0-9]*\).*/\1/p' "$work/$session.json")
	csv "$session" "
		WITH reads AS (
			SELECT path, ts_ns, dur_ns, ret, file_offset, file_offset - lag(file_offset + ret) OVER (PARTITION BY path ORDER BY ts_ns) AS jump
			FROM syscalls WHERE syscall = 'pread64' AND path LIKE '%.wt' AND ret > 0
		)
		SELECT '$session' AS scan, count(*) FILTER (file) AS reads,
			round(100 * count(*) FILTER (file AND jump = 0) / count(*) FILTER (file), 1) AS percent_continued,
			round((sum(ret) FILTER (file)) / 1048576 / ((max(ts_ns + dur_ns) FILTER (file) - min(ts_ns) FILTER (file)) / 1e9), 1) AS mib_per_s,
			(SELECT count(*) FROM block WHERE op = 'read' AND path LIKE '%/collection.wt') AS device_reads,
			$(wc -l <"$work/blocks") AS leaf_blocks, $same AS read_once,
			(sum(ret) FILTER (file_offset > 0))::BIGINT AS bytes_read, $own AS bytes_by_wiredtiger,
			(SELECT count(*) FROM findings WHERE rule = 'scan-out-of-order') AS findings
		FROM (SELECT *, path LIKE '%/collection.wt' AS file FROM reads)" | tail -n +2
	csv "$session" "
		SELECT row_number() OVER (ORDER BY ts_ns) AS x, file_offset / 1048576 AS y, 'collection' AS series
		FROM syscalls WHERE syscall = 'pread64' AND path LIKE '%/collection.wt' AND ret > 0 ORDER BY x" |
		figure dots "$(picture "$session")" --title "Offsets: $session" --x "request" --y "MiB of the file" >>"$work/pictures"
}

"$python" "$documents" fill "$work/random" "$rows" shuffled
"$python" "$documents" fill "$work/sorted" "$rows" sorted
{
	echo "scan,reads,percent_continued,mib_per_s,device_reads,leaf_blocks,read_once,bytes_read,bytes_by_wiredtiger,findings"
	scan inserted-in-order index sorted
	scan by-id index random
	scan by-record natural random
	"$python" "$documents" rewrite "$work/random"
	scan rewritten index random
} >"$work/table.csv"
heading "Scans of a collection"
figure table <"$work/table.csv"
heading "What fathom finds"
for session in inserted-in-order by-id by-record rewritten; do
	echo "$session:"
	table "$session" "SELECT rule, round(cost_ns / 1e6)::BIGINT AS cost_ms, title FROM findings WHERE rule <> 'cpu-starvation'"
done
cat "$work/pictures"
cat <<'TEXT'

IOscope, MB/s on HDD and SSD: single server 48.4 and 306.7; two shards 25.5 and 11.8, 161.2 and 182.6;
another execution 47.8 and 30.6, 539.6 and 401.4. After each shard was written again: 1341 s to
108 s (12.4 times) on HDD, 89 s to 32 s (2.5 times) on SSD.
TEXT
where_sessions_are
