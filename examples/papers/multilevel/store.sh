#!/usr/bin/env bash
# Multilevel trace analysis, figures 18 to 21: the time to build the store of a trace, its size, and the time
# of a query of all of it and of a window, against PostgreSQL with the same rows and an index on
# time.
#
#   examples/papers/multilevel/store.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin multilevel-store "$@"
need command pg_ctlcluster postgresql
need command fio fio
sizes=(50000 200000 800000)
[ -z "$quick" ] || sizes=(3000)
postgres=$(find /usr/lib/postgresql -maxdepth 3 -name initdb | sort -V | tail -n 1)
[ -n "$postgres" ] || fail "no initdb below /usr/lib/postgresql" "apt-get install postgresql"
postgres=$(dirname -- "$postgres")
chmod 755 "$work"
mkdir -- "$work/postgres" "$work/socket"
chown postgres -- "$work/postgres" "$work/socket"
as_postgres() { (cd "$work/socket" && setpriv --reuid postgres --regid postgres --init-groups -- "$@"); }
sql() { as_postgres "$postgres/psql" -h "$work/socket" -qAt postgres -c "$1"; }

as_postgres "$postgres/initdb" -D "$work/postgres" -A trust --no-sync >/dev/null
as_postgres "$postgres/postgres" -D "$work/postgres" -k "$work/socket" -c listen_addresses= \
	-c shared_buffers=256MB -c client_min_messages=warning >"$work/log" 2>&1 &
servers=($!)
await 30 sql "SELECT 1"

head -c 16777216 /dev/urandom >"$work/data"
columns="rid, ts_ns, dur_ns, pid, tid, comm, cpu, syscall, class, fd, file_id, path, size, file_offset, ret, bytes"
whole="SELECT syscall, count(*), sum(dur_ns), sum(bytes) FROM syscalls GROUP BY syscall ORDER BY 1"

{
	echo "calls,what,fathom,postgresql"
	for size in "${sizes[@]}"; do
		rm -f -- "$work/raw"
		record unused --raw "$work/raw" -- fio --name=reader --filename="$work/data" --rw=randread --bs=4k --size=16m \
			--io_size="$((size * 4))k" --ioengine=psync --thread --numjobs=1 --output=/dev/null
		read_only=$(clock "$fathom" replay "$work/raw" --force -o "$(fathom_on trace)" 2>/dev/null)
		rows=$(value trace "SELECT count(*) FROM syscalls")
		csv trace "SELECT $columns FROM syscalls ORDER BY ts_ns" >"$work/rows.csv"
		chmod a+r "$work/rows.csv"
		sql "DROP TABLE IF EXISTS syscalls; CREATE TABLE syscalls (rid BIGINT, ts_ns BIGINT, dur_ns BIGINT, pid INT, tid INT, comm TEXT,
			cpu INT, syscall TEXT, class TEXT, fd INT, file_id NUMERIC, path TEXT, size BIGINT, file_offset NUMERIC, ret BIGINT, bytes BIGINT)"
		build=$(clock sql "COPY syscalls FROM '$work/rows.csv' (FORMAT csv, HEADER); CREATE INDEX ON syscalls (ts_ns); ANALYZE syscalls" 2>/dev/null)
		echo "$rows,build s,$read_only,$build"
		echo "$rows,MiB,$(mib "$(fathom_on trace)"),$(sql "SELECT round(pg_total_relation_size('syscalls') / 1048576.0, 1)")"
		[ "$("$fathom" query "$(fathom_on trace)" --format csv "$whole" | tail -n +2 | tr -d '"' | sort)" = \
			"$(sql "COPY ($whole) TO STDOUT (FORMAT csv)" | sort)" ] || fail "the two stores answer differently" "see $work/rows.csv"
		echo "$rows,whole query s,$(clock "$fathom" query "$(fathom_on trace)" "$whole" 2>/dev/null),$(clock sql "$whole" 2>/dev/null)"
		# A hundredth of the time in 64 steps, as a page draws it.
		middle=$(value trace "SELECT (min(ts_ns) + max(ts_ns)) // 2 FROM syscalls")
		length=$(value trace "SELECT (max(ts_ns) - min(ts_ns)) // 100 FROM syscalls")
		window="SELECT (ts_ns - $middle) / ($length / 64 + 1), syscall, count(*), sum(dur_ns) FROM syscalls
			WHERE ts_ns BETWEEN $middle AND $middle + $length GROUP BY 1, 2"
		start=$(value trace "SELECT started_at_ns FROM session")
		from=$(awk -v a="$middle" -v b="$start" 'BEGIN { printf "%.6fs", (a - b) / 1e9 }')
		until=$(awk -v a="$middle" -v b="$start" -v c="$length" 'BEGIN { printf "%.6fs", (a + c - b) / 1e9 }')
		echo "$rows,window query s,$(clock "$fathom" zoom "$(fathom_on trace)" --by syscall --pixels 64 --from "$from" --until "$until" 2>/dev/null),$(clock sql "$window" 2>/dev/null)"
	done
} >"$work/table.csv"
heading "Store of a trace"
figure table <"$work/table.csv"
for what in "build s" MiB "whole query s"; do
	{
		echo "x,series,y"
		awk -F, -v what="$what" '$2 == what { print $1 ",fathom," $3; print $1 ",PostgreSQL," $4 }' "$work/table.csv" | sort -t, -k2,2 -s
	} | figure lines "$(picture "store-${what%% *}")" --title "$what" --x "calls" --y "$what"
done
cat <<'TEXT'

Paper: PostgreSQL takes much longer to build, more room, and more time for a query of everything; the
figures have no numbers in the text.
TEXT
where_sessions_are
