#!/usr/bin/env bash
# Redis and its two logs: the one that people read, which it opens for every line, and the
# append-only file, which it makes durable every second or for every command.
#
#   examples/redis-log/run.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin redis-log "$@"
need command redis-server redis-server
need command redis-benchmark redis-tools

clients=${quick:+5000}
clients=${clients:-20000}
commands=${quick:+1000}
commands=${commands:-20000}

cli() { redis-cli -s "$work/redis.sock" "$@"; }

# serve SESSION OUTPUT OPTIONS...: records a server, whose standard output goes to a file.
serve() {
	local session=$1 output=$2
	shift 2
	rm -rf -- "$work/data"
	mkdir -- "$work/data"
	record "$session" -- redis-server --port 0 --unixsocket "$work/redis.sock" --dir "$work/data" \
		--daemonize no --save '' "$@" >"$output" 2>&1 &
	servers=($!)
	await 20 cli ping
}

stop() {
	cli shutdown nosave >/dev/null 2>&1 || true
	wait "${servers[0]}"
	servers=()
}

# Clients that connect for one command each: with --loglevel verbose two lines in the log.
connect() { redis-benchmark -s "$work/redis.sock" -t ping_mbulk -k 0 -n "$clients" -q >/dev/null 2>&1; }

# Clients that stay, and write.
write() { redis-benchmark -s "$work/redis.sock" -t set -n "$commands" -r 10000 -c 4 -q >/dev/null; }

# What a line of the log costs: calls on its file, by kind.
log_calls() {
	table "$1" "
		SELECT syscall, count(*) AS calls, (sum(dur_ns) / 1e6)::DECIMAL(9, 1) AS total_ms, median(dur_ns)::BIGINT AS median_ns
		FROM syscalls WHERE path LIKE '%/$2' GROUP BY syscall ORDER BY calls DESC, syscall"
}

# Calls on the log in a thousandth of a second in the middle of a recording, in order.
log_picture() {
	csv "$1" "
		WITH calls AS (SELECT ts_ns, syscall FROM syscalls WHERE path LIKE '%/redis.log'),
		middle AS (SELECT median(ts_ns)::BIGINT AS middle_ns FROM calls)
		SELECT (ts_ns - middle_ns) / 1000 AS x, dense_rank() OVER (ORDER BY syscall) AS y, syscall AS series
		FROM calls, middle WHERE ts_ns BETWEEN middle_ns AND middle_ns + 1000000 ORDER BY series" |
		figure dots "$(picture "$1")" --title "Calls on the log within 1 ms ($1)" --x "µs" --y "call"
}

heading "Log to a file: opened for every line"
serve log-file "$work/output" --loglevel verbose --logfile "$work/data/redis.log"
connect
stop
findings log-file
echo
log_calls log-file redis.log
log_picture log-file
echo
diagnose log-file

heading "Log to standard output, which is the same file"
serve log-stdout "$work/data/redis.log" --loglevel verbose --logfile ''
connect
stop
findings log-stdout
echo
log_calls log-stdout redis.log
log_picture log-stdout

heading "What changed"
compare log-file log-stdout

for policy in always everysec; do
	heading "Append-only file, appendfsync $policy"
	serve "aof-$policy" "$work/output" --appendonly yes --appendfsync "$policy"
	write
	stop
	findings "aof-$policy"
	echo
	table "aof-$policy" "
		SELECT syscall, comm, count(*) AS calls, sum(bytes)::BIGINT AS bytes,
			(sum(dur_ns) / 1e6)::DECIMAL(9, 1) AS total_ms, quantile_disc(dur_ns, 0.99) AS p99_ns
		FROM syscalls WHERE path LIKE '%.aof' AND syscall IN ('write', 'fdatasync', 'fsync')
		GROUP BY syscall, comm ORDER BY total_ms DESC"
	[ "$policy" != always ] || [ -n "$quick" ] || { echo && diagnose "aof-$policy"; }
done
where_sessions_are
