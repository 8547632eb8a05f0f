#!/usr/bin/env bash
# A scan whose order is not the file's: rows of a B-tree store that were inserted at random,
# read in the order of an index, in the order of the table, and by the index of a table that
# was written anew in that order.
#
#   examples/scan-order/run.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin scan-order "$@"
need file /usr/bin/python3 python3

rows=${quick:+3000}
rows=${rows:-60000}
database=$work/documents.db
python=/usr/bin/python3

# scan SESSION ORDER: with nothing of the file in memory.
scan() {
	sync "$database"
	dd if="$database" iflag=nocache count=0 status=none
	record "$1" -- "$python" "$here/scan.py" "$2" "$database" >"$work/bytes"
	echo "$(cat "$work/bytes") bytes of documents"
	echo
	findings "$1"
	echo
	# A read continues when it begins where the one before has ended.
	table "$1" "
		WITH reads AS (
			SELECT rid, s.ts_ns, dur_ns, file_offset, ret,
				file_offset - lag(file_offset + ret) OVER (ORDER BY s.ts_ns) AS jump
			FROM syscalls AS s WHERE syscall = 'pread64' AND path = '$database' AND ret > 100
		)
		SELECT count(*) AS reads, count(*) FILTER (jump = 0) AS continued, count(*) FILTER (jump < 0) AS backwards,
			count(*) FILTER (abs(jump) > 131072) AS far, (sum(dur_ns) / 1e6)::DECIMAL(9, 1) AS total_ms,
			median(dur_ns)::BIGINT AS median_ns,
			(SELECT count(*) FROM block SEMI JOIN reads USING (rid) WHERE op = 'read') AS device_reads,
			(SELECT (sum(bytes) / 1048576)::DECIMAL(9, 1) FROM block SEMI JOIN reads USING (rid) WHERE op = 'read') AS device_mib
		FROM reads"
	echo
	# The picture: where in the file, over the scan, a line of 32 cells for each of 12 steps.
	table "$1" "
		WITH reads AS (
			SELECT file_offset AS o, ntile(12) OVER (ORDER BY ts_ns) AS step,
				least(31, floor(32 * file_offset / (SELECT max(file_offset) + 1 FROM syscalls WHERE syscall = 'pread64' AND path = '$database'))) AS cell
			FROM syscalls WHERE syscall = 'pread64' AND path = '$database' AND ret > 100
		),
		cells AS (
			SELECT step, c.cell, (SELECT count(*) FROM reads AS r WHERE r.step = s.step AND r.cell = c.cell) AS n
			FROM (SELECT DISTINCT step FROM reads) AS s, (SELECT unnest(range(32)) AS cell) AS c
		)
		SELECT step, string_agg(CASE WHEN n = 0 THEN '·' ELSE '█' END, '' ORDER BY cell) AS offsets FROM cells
		GROUP BY step ORDER BY step"
}

"$python" "$here/scan.py" fill "$database" "$rows"

heading "By the index"
scan index index
echo
diagnose index

heading "By the table"
scan table table

heading "By the index, after the table was written anew in its order"
"$python" "$here/scan.py" rebuild "$database"
scan rebuilt index

heading "What changed"
compare index rebuilt 25
where_sessions_are
