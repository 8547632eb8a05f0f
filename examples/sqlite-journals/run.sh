#!/usr/bin/env bash
# SQLite in each journal mode: what a transaction asks of the disk, and what it costs.
#
#   examples/sqlite-journals/run.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin sqlite-journals "$@"
need command sqlite3 sqlite3

rows=${quick:+40}
rows=${rows:-1000}
modes=(delete truncate persist wal wal-normal memory off)

# insert FILE MODE: a transaction for each row, as programs do that know of none. With
# wal-normal commits do not wait for the disk: the last ones are lost with the power, no more.
insert() {
	{
		echo "PRAGMA journal_mode = ${2%-normal};"
		[ "$2" != wal-normal ] || echo 'PRAGMA synchronous = normal;'
		echo 'CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);'
		for row in $(seq "$rows"); do echo "INSERT INTO t VALUES ($row, 'value of row $row');"; done
	} >"$1"
}

heading "$rows transactions in each mode"
{
	echo "mode,calls,writes,syncs,opens,unlinks,bytes,device_bytes,sync_ms,ms"
	for mode in "${modes[@]}"; do
		rm -f -- "$work"/test.db*
		insert "$work/test.sql" "$mode"
		# shellcheck disable=SC2016 # the shell that is recorded expands them
		record "$mode" -- sqlite3 -init /dev/null "$work/test.db" ".read $work/test.sql" >/dev/null
		value "$mode" "
			SELECT '$mode', count(*), count(*) FILTER (call_writes(syscall)),
				count(*) FILTER (syscall IN ('fsync', 'fdatasync')), count(*) FILTER (syscall LIKE 'open%'),
				count(*) FILTER (syscall LIKE 'unlink%'), coalesce(sum(bytes) FILTER (call_writes(syscall)), 0)::BIGINT,
				(SELECT coalesce(sum(bytes), 0)::BIGINT FROM block WHERE op = 'write' AND rid IS NOT NULL),
				round(coalesce(sum(dur_ns) FILTER (syscall IN ('fsync', 'fdatasync')), 0) / 1e6)::INTEGER,
				round((max(ts_ns + dur_ns) - min(ts_ns)) / 1e6)::INTEGER
			FROM syscalls WHERE path LIKE '$work/%' OR path LIKE '$work'"
	done
} >"$work/modes.csv"
column -s, -t "$work/modes.csv" 2>/dev/null || cat "$work/modes.csv"

for mode in "${modes[@]}"; do
	heading "$mode"
	findings "$mode"
done

heading "One transaction around all rows"
{
	echo 'PRAGMA journal_mode = delete; CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); BEGIN;'
	grep INSERT "$work/test.sql"
	echo 'COMMIT;'
} >"$work/one.sql"
rm -f -- "$work"/test.db*
mv -- "$work/one.sql" "$work/test.sql"
record one -- sqlite3 -init /dev/null "$work/test.db" ".read $work/test.sql" >/dev/null
findings one

heading "From a journal that is deleted to a write-ahead log"
compare delete wal-normal 30
where_sessions_are
