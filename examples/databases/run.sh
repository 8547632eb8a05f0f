#!/usr/bin/env bash
# PostgreSQL and MariaDB: what a committed transaction asks of the disk, when commits wait for
# it and when not, and what a checkpoint does to those who wait.
#
#   examples/databases/run.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin databases "$@"

# As many transactions in each run, so that what they ask for can be compared.
transactions=${quick:+400}
transactions=${transactions:-8000}
scale=${quick:+1}
scale=${scale:-5}
rows=${quick:+2000}
rows=${rows:-50000}

# Who calls fsync, on what, after how many bytes; $2 is the directory of the data.
pattern() {
	table "$1" "
		WITH calls AS (
			SELECT comm, syscall, dur_ns, bytes,
				regexp_replace(substr(path, length('$2') + 2), '[0-9A-F]{8,}|[0-9]+', '#', 'g') AS file
			FROM syscalls WHERE path LIKE '$2/%'
		)
		SELECT file, comm, count(*) FILTER (call_writes(syscall)) AS writes,
			(coalesce(sum(bytes) FILTER (call_writes(syscall)), 0) / 1024)::INTEGER AS kib,
			count(*) FILTER (syscall IN ('fsync', 'fdatasync')) AS syncs,
			(coalesce(sum(dur_ns) FILTER (syscall IN ('fsync', 'fdatasync')), 0) / 1e6)::DECIMAL(9, 1) AS sync_ms,
			(coalesce(quantile_disc(dur_ns, 0.99) FILTER (syscall IN ('fsync', 'fdatasync')), 0) / 1e6)::DECIMAL(9, 1) AS p99_ms
		FROM calls GROUP BY file, comm HAVING writes + syncs > 0 ORDER BY sync_ms DESC, kib DESC LIMIT 8"
	echo
	table "$1" "
		SELECT written, device_bytes, round(device_bytes / written, 1) AS amplification
		FROM (SELECT sum(bytes)::BIGINT AS written FROM syscalls WHERE path LIKE '$2/%' AND call_writes(syscall)),
			(SELECT sum(bytes)::BIGINT AS device_bytes FROM block WHERE op = 'write' AND rid IS NOT NULL)"
}

# --- PostgreSQL ---
need command pg_ctlcluster postgresql
postgres=$(find /usr/lib/postgresql -maxdepth 3 -name initdb | sort -V | tail -n 1)
[ -n "$postgres" ] || fail "no initdb below /usr/lib/postgresql" "apt-get install postgresql"
postgres=$(dirname -- "$postgres")
chmod 755 "$work"
mkdir -- "$work/postgres" "$work/socket"
chown postgres -- "$work/postgres" "$work/socket"
cd "$work/socket"

as_postgres() { setpriv --reuid postgres --regid postgres --init-groups -- "$@"; }
pg() { as_postgres "$postgres/$1" -h "$work/socket" "${@:2}"; }

as_postgres "$postgres/initdb" -D "$work/postgres" -A trust --no-sync >/dev/null
cp -a -- "$work/postgres" "$work/postgres.new"

# anew DIRECTORY: as it was at first, so that files have the same names in all runs.
anew() {
	rm -rf -- "$1"
	cp -a -- "$1.new" "$1"
	sync -f "$1"
}

# postgres SESSION OPTIONS...: pgbench's mix of small transactions.
postgres() {
	local session=$1
	shift
	anew "$work/postgres"
	record "$session" --user postgres -- "$postgres/postgres" -D "$work/postgres" -k "$work/socket" \
		-c listen_addresses= -c max_wal_size=64MB "$@" >"$work/postgres.log" 2>&1 &
	servers=($!)
	await 30 pg pg_isready
	pg pgbench -i -s "$scale" -q postgres >/dev/null 2>&1
	pg pgbench -c 4 -t "$((transactions / 4))" postgres 2>/dev/null | grep -aE 'tps|latency average'
	as_postgres "$postgres/pg_ctl" -D "$work/postgres" -m fast stop >/dev/null
	wait "${servers[0]}"
	servers=()
	echo
	findings "$session"
	echo
	pattern "$session" "$work/postgres"
}

heading "PostgreSQL, synchronous_commit = on"
postgres postgres-on
[ -n "$quick" ] || { echo && diagnose postgres-on; }
heading "PostgreSQL, synchronous_commit = off"
postgres postgres-off -c synchronous_commit=off
heading "What changed for PostgreSQL"
compare postgres-on postgres-off 25

[ -n "$quick" ] || {
	heading "PostgreSQL, checkpoints that write all at once"
	postgres postgres-checkpoint -c checkpoint_timeout=30s -c checkpoint_completion_target=0 -c max_wal_size=32MB
	echo
	# Commits while the checkpointer syncs, and else.
	table postgres-checkpoint "
		WITH checkpoints AS (
			SELECT min(ts_ns) AS a, max(ts_ns + dur_ns) AS b FROM (
				SELECT ts_ns, dur_ns, sum(gap) OVER (ORDER BY ts_ns) AS run FROM (
					SELECT ts_ns, dur_ns, coalesce(ts_ns - lag(ts_ns) OVER (ORDER BY ts_ns) > 1e9, false)::INTEGER AS gap
					FROM syscalls WHERE path LIKE '$work/postgres/base/%' AND syscall IN ('fsync', 'fdatasync')))
			GROUP BY run)
		SELECT if(EXISTS (FROM checkpoints WHERE ts_ns BETWEEN a AND b), 'while a checkpoint syncs', 'else') AS commits,
			count(*) AS syncs, median(dur_ns)::BIGINT AS median_ns, quantile_disc(dur_ns, 0.99) AS p99_ns, max(dur_ns) AS max_ns
		FROM syscalls WHERE path LIKE '%/pg_wal/%' AND syscall = 'fdatasync' GROUP BY 1"
}

# --- MariaDB ---
need command mariadbd mariadb-server-core
need command mariadb-install-db mariadb-server-core
need command mariadb mariadb-client-core
need command sysbench sysbench
mkdir -- "$work/mariadb"
mariadb-install-db --no-defaults --user=root --datadir="$work/mariadb" --auth-root-authentication-method=normal \
	--skip-test-db >/dev/null 2>&1
cp -a -- "$work/mariadb" "$work/mariadb.new"

bench() {
	sysbench oltp_write_only --db-driver=mysql --mysql-socket="$work/mariadb.sock" --mysql-user=root --mysql-db=mysql \
		--tables=1 --table-size="$rows" --threads=4 --time=0 --events="$transactions" "$@"
}

sql() { mariadb --no-defaults -u root -S "$work/mariadb.sock" -e "$1"; }

# innodb SESSION OPTIONS...: sysbench's transactions that write.
innodb() {
	local session=$1
	shift
	anew "$work/mariadb"
	record "$session" -- mariadbd --no-defaults --user=root --datadir="$work/mariadb" --socket="$work/mariadb.sock" \
		--skip-networking --pid-file="$work/mariadb.pid" --log-bin=binlog "$@" >"$work/mariadb.log" 2>&1 &
	servers=($!)
	await 60 sql 'SELECT 1'
	bench prepare >/dev/null
	bench run | grep -aE 'transactions:|95th' | tr -s ' '
	sql SHUTDOWN
	wait "${servers[0]}"
	servers=()
	echo
	findings "$session"
	echo
	pattern "$session" "$work/mariadb"
}

heading "MariaDB, innodb_flush_log_at_trx_commit = 1, sync_binlog = 1"
innodb mariadb-1 --innodb-flush-log-at-trx-commit=1 --sync-binlog=1
[ -n "$quick" ] || { echo && diagnose mariadb-1; }
heading "MariaDB, innodb_flush_log_at_trx_commit = 2, sync_binlog = 0"
innodb mariadb-2 --innodb-flush-log-at-trx-commit=2 --sync-binlog=0
heading "What changed for MariaDB"
compare mariadb-1 mariadb-2 25
where_sessions_are
