#!/usr/bin/env bash
# DIO, figures 5a to 5d: every access to a log of two programs, one that writes and one that ships
# it, by offset, for both files that had the log's name; with a signature of the bytes. The
# programs are those of examples/log-shipper.
#
#   examples/papers/dio/loss.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin dio-loss "$@"
need python pygtail python3-pygtail
shipper=$root/examples/log-shipper

for how in pygtail checked; do
	rm -rf -- "$work/logs"
	mkdir -- "$work/logs"
	# shellcheck disable=SC2016 # the shell that is recorded expands them
	record "$how" --content hash -- bash -c '
		/usr/bin/python3 "$1/shipper.py" "$2" "$3/app.log" "$3/shipped" &
		/usr/bin/python3 "$1/application.py" "$3/app.log"
		wait' ship "$shipper" "$how" "$work/logs"
	accesses="
		WITH roles AS (
			SELECT pid, if(bool_or(call_writes(syscall)), 'app', 'shipper') AS program
			FROM syscalls WHERE path LIKE '%/app.log' GROUP BY pid
		),
		accesses AS (
			SELECT s.ts_ns, program, syscall, dense_rank() OVER (ORDER BY s.file_id) AS file, f.ino,
				file_offset, ret, if(ret > 0, hash_hex(hash), '') AS signature
			FROM syscalls AS s JOIN files AS f USING (file_id) JOIN roles USING (pid)
			WHERE s.path LIKE '%/app.log' AND syscall IN ('read', 'write')
		)"
	heading "Accesses to app.log: $how"
	csv "$how" "$accesses
		SELECT program, syscall, file, ino, file_offset, ret AS bytes, signature FROM accesses
		QUALIFY row_number() OVER (PARTITION BY program, syscall, file, file_offset, ret ORDER BY ts_ns) = 1
		ORDER BY ts_ns" | figure table
	echo
	lost=$(value "$how" "$accesses,
		bytes AS (
			SELECT program, file, unnest(range(file_offset, file_offset + ret)) AS byte FROM accesses WHERE ret > 0
		)
		SELECT count(*) FROM (
			SELECT file, byte FROM bytes WHERE program = 'app' EXCEPT SELECT file, byte FROM bytes WHERE program = 'shipper'
		)")
	echo "bytes that the app wrote and the shipper never read: $lost"
	csv "$how" "$accesses
		SELECT (ts_ns - (SELECT min(ts_ns) FROM accesses)) / 1e9 AS x, file_offset AS y,
			program || ' ' || syscall || ', file ' || file AS series
		FROM accesses ORDER BY series" |
		figure dots "$(picture "$how")" --title "Offsets of app.log, two files of one name ($how)" --x "seconds" --y "byte of the file"
done
cat <<'TEXT'

DIO: Fluent Bit 1.4.0 reads the second file from byte 26, where it had stopped in the first: the 16
bytes at its beginning are lost. Version 2.0.5 reads from byte 0, and the signatures are equal.
TEXT
where_sessions_are
