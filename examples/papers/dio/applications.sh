#!/usr/bin/env bash
# DIO, figure 8: how long Redis and RocksDB take for the same work without a tracer, under fathom,
# and under strace. Redis is recorded as in the paper: only what concerns its directory.
#
#   examples/papers/dio/applications.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin dio-applications "$@"
need command redis-server redis-server
need command redis-benchmark redis-tools
need command db_bench rocksdb-tools
need command strace strace
rounds=${quick:+1}
rounds=${rounds:-3}
requests=${quick:+5000}
requests=${requests:-100000}
operations=${quick:+2000}
operations=${operations:-10000}
port=$((20000 + RANDOM % 10000))

# tracer NAME SESSION FILTER: the words in front of a command, in $before.
tracer() {
	case $1 in
	none) before=() ;;
	strace) before=(strace -f -o "$work/trace") ;;
	fathom)
		before=("$fathom" record --quiet --force -o "$(fathom_on "$2")")
		[ -z "$3" ] || before+=(--path "$3")
		before+=(--)
		;;
	esac
}

# Redis writes a line of its log for each client that connects: one connection per request.
redis() {
	local seconds
	rm -rf -- "$work/redis"
	mkdir -- "$work/redis"
	tracer "$1" redis "$work/redis"
	"${before[@]}" redis-server --port "$port" --bind 127.0.0.1 --dir "$work/redis" --save '' \
		--appendonly yes --appendfsync everysec --logfile redis.log --loglevel debug >/dev/null 2>&1 &
	local server=$!
	servers=("$server")
	await 20 redis-cli -p "$port" ping
	seconds=$(clock redis-benchmark -p "$port" -t set -n "$requests" -q 2>/dev/null)
	redis-cli -p "$port" shutdown nosave >/dev/null 2>&1 || true
	wait "$server" || true
	servers=()
	echo "$seconds"
}

rocksdb() {
	rm -rf -- "$work/rocksdb"
	tracer "$1" rocksdb ''
	clock "${before[@]}" db_bench --benchmarks=fillrandom,readrandomwriterandom --db="$work/rocksdb" \
		--num="$operations" --threads=8 --readwritepercent=50 --max_background_jobs=8 \
		--write_buffer_size=1048576 --compression_type=none 2>/dev/null
}

{
	echo "application,tracer,seconds,stored,lost"
	for ((round = 0; round < rounds; round++)); do
		for application in redis rocksdb; do
			for tracer in none fathom strace; do
				seconds=$("$application" "$tracer")
				stored=,
				[ "$tracer" != fathom ] || stored=$(facts "$application" | cut -d, -f 2,3)
				echo "$application,$tracer,$seconds,$stored"
			done
		done
	done
} >"$work/rounds.csv"

heading "Execution time"
cat >"$work/paper.csv" <<'CSV'
application,tracer,paper
redis,none,23.5 min
redis,fathom,"DIO 1.04 times, Sysdig 1.62"
redis,strace,4.86 times
rocksdb,none,227.5 min
rocksdb,fathom,"DIO 1.38 times and 6 % lost, Sysdig 1.07"
rocksdb,strace,1.74 times
CSV
figure medians seconds stored lost <"$work/rounds.csv" | figure ratio seconds tracer none percent application |
	figure beside "$work/paper.csv" application tracer | tee "$work/table.csv" | figure table
figure bars "$(picture applications)" --x-column application --series-column tracer --y-column percent \
	--title "Execution time" --y "percent of untraced" <"$work/table.csv"
where_sessions_are
