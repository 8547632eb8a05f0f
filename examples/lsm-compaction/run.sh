#!/usr/bin/env bash
# RocksDB's clients while its compactions run: the 99th percentile by thread name over time,
# with background threads that write as fast as they can, and with a rate limiter.
#
#   examples/lsm-compaction/run.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin lsm-compaction "$@"
need command db_bench rocksdb-tools

seconds=${quick:+4}
seconds=${seconds:-20}
keys=${quick:+100000}
keys=${keys:-400000}

# A tree whose levels are small, so that there is always something to compact.
options=(--db="$work/db" --num="$keys" --key_size=16 --value_size=1000 --compression_type=none
	--write_buffer_size=4194304 --target_file_size_base=4194304 --max_bytes_for_level_base=16777216
	--cache_size=67108864 --use_direct_reads --use_direct_io_for_flush_and_compaction --max_background_flushes=1 --max_background_compactions=7)

# bench SESSION OPTIONS...: 8 clients that read and one that writes 8 MiB a second, so that compactions
# come in bursts. The tree is there before.
bench() {
	local session=$1
	shift
	rm -rf -- "$work/db"
	db_bench --benchmarks=fillrandom "${options[@]}" >/dev/null 2>&1
	record "$session" --syscalls data --layers syscall,block,sched -- db_bench --benchmarks=readwhilewriting \
		--benchmark_write_rate_limit=8388608 --use_existing_db=1 --threads=8 --duration="$seconds" "${options[@]}" "$@" \
		>"$work/bench" 2>&1
	grep -a 'ops/sec' "$work/bench" | tail -n 1 | tr -d '\r'
}

# p99 of the clients in windows, and what the background did meanwhile: the figures 6 and 7.
windows() {
	table "$1" "
		WITH calls AS (
			SELECT floor((ts_ns - (SELECT started_at_ns FROM session)) / 1e9 / $2) * $2 AS second,
				CASE WHEN comm LIKE 'rocksdb:low%' THEN 'compaction' WHEN comm LIKE 'rocksdb:high%' THEN 'flush'
					WHEN comm LIKE 'db_bench%' THEN 'client' END AS role,
				tid, dur_ns, coalesce(bytes, 0) AS bytes, syscall
			FROM syscalls WHERE class = 'data' AND ret IS NOT NULL
		)
		SELECT second::DECIMAL(6, 1) AS second,
			count(*) FILTER (role = 'client') AS client_calls,
			quantile_disc(dur_ns, 0.99) FILTER (role = 'client') AS client_p99_ns,
			count(DISTINCT tid) FILTER (role = 'compaction' AND bytes > 0) AS compacting_threads,
			(sum(bytes) FILTER (role = 'compaction') / 1048576)::INTEGER AS compaction_mib,
			(sum(bytes) FILTER (role = 'flush') / 1048576)::INTEGER AS flush_mib
		FROM calls GROUP BY second ORDER BY second"
}

# p99 of the clients by how many compaction threads moved bytes in the same tenth of a second.
by_compactions() {
	table "$1" "
		WITH calls AS (
			SELECT ts_ns // 100000000 AS tenth, comm LIKE 'rocksdb:low%' AS compacts, comm LIKE 'db_bench%' AS client,
				tid, dur_ns, coalesce(bytes, 0) AS bytes
			FROM syscalls WHERE class = 'data' AND ret IS NOT NULL
		),
		background AS (
			SELECT tenth, count(DISTINCT tid) FILTER (compacts AND bytes > 0) AS threads,
				(sum(bytes) FILTER (compacts) / 1048576) AS mib FROM calls GROUP BY tenth
		)
		SELECT threads AS compacting_threads, count(DISTINCT tenth) AS tenths, count(*) AS client_calls,
			median(dur_ns)::BIGINT AS client_median_ns, quantile_disc(dur_ns, 0.99) AS client_p99_ns
		FROM calls JOIN background USING (tenth) WHERE client GROUP BY threads ORDER BY threads"
}

# The same as pictures: calls by name of the threads, and the clients' p99.
pictures() {
	csv "$1" "
		SELECT floor((ts_ns - (SELECT started_at_ns FROM session)) / 1e9 / $2) * $2 AS x, count(*) AS y,
			if(comm LIKE 'rocksdb:low%', comm, regexp_replace(comm, '[0-9]+\$', '')) AS series
		FROM syscalls WHERE class = 'data' AND ret IS NOT NULL AND (comm LIKE 'rocksdb:%' OR comm LIKE 'db_bench%')
		GROUP BY ALL ORDER BY series, x" |
		figure lines "$(picture "$1-threads")" --log-y --title "Calls by thread name ($1)" --x "second" --y "calls per $2 s"
	csv "$1" "
		SELECT floor((ts_ns - (SELECT started_at_ns FROM session)) / 1e9 / $2) * $2 AS x,
			quantile_disc(dur_ns, 0.99) / 1e6 AS y, 'clients' AS series
		FROM syscalls WHERE class = 'data' AND ret IS NOT NULL AND comm LIKE 'db_bench%' GROUP BY x ORDER BY x" |
		figure lines "$(picture "$1-p99")" --title "99th percentile of the clients' calls ($1)" --x "second" --y "ms"
}

by_thread_name() {
	table "$1" "
		SELECT regexp_replace(comm, '[0-9]+\$', '*') AS threads, count(DISTINCT tid) AS count, count(*) AS calls,
			(sum(bytes) / 1048576)::INTEGER AS mib, median(dur_ns)::BIGINT AS median_ns, quantile_disc(dur_ns, 0.99) AS p99_ns
		FROM syscalls WHERE class = 'data' GROUP BY 1 ORDER BY calls DESC LIMIT 6"
}

heading "Compactions as fast as they can"
bench free
echo
findings free
echo
by_thread_name free
echo
windows free 0.5
echo
pictures free 0.5
echo
by_compactions free
[ -n "$quick" ] || { echo && diagnose free | head -n 60; }

heading "Compactions and flushes limited to 24 MiB/s"
bench limited --rate_limiter_bytes_per_sec=25165824
echo
findings limited
echo
by_thread_name limited
echo
windows limited 0.5
echo
pictures limited 0.5
echo
by_compactions limited
where_sessions_are
