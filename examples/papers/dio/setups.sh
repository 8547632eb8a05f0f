#!/usr/bin/env bash
# DIO, table 3 and figures 9 to 12: the throughput of a file server without a tracer, under fathom
# with each amount of detail, and under strace, perf trace, and bpftrace; the calls that each
# stores and loses; its processor time, memory, and room on disk.
#
#   examples/papers/dio/setups.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin dio-setups "$@"
need command strace strace
server=$(compiled fileserver)
rounds=${quick:+1}
rounds=${rounds:-3}
calls=${quick:+3000}
calls=${calls:-100000}

setups=(
	"fathom counters|--detail counters"
	"fathom raw|--detail raw"
	"fathom fds|--detail fds"
	"fathom full|--detail full"
	"fathom full, hash in user|--content hash --hash-in user"
	"fathom full, hash in kernel|--content hash"
	"fathom full, plain|--content plain --content-max 16384"
)
others=("strace" "strace-paths" "strace-content")
have perf && others+=("perf")
have bpftrace && others+=("bpftrace")

# serve THREADS' CALLS COMMAND...: thousands of calls per second, the server's processor time per call
# (which bears other work on the machine better), and how many calls there were.
serve() {
	local each=$1 answer
	shift
	rm -rf -- "$work/files"
	mkdir -- "$work/files"
	# A tracer may write on the same output.
	answer=$("$@" "$server" "$work/files" 4 "$each" 2>"$work/errors" | grep -E '^[0-9]+,[0-9.]+,' | tail -n 1)
	awk -F, '{ printf "%.1f,%.2f,%d", $1 / $2 / 1000, $5 / $1 * 1e6, $1 }' <<<"$answer"
}

{
	echo "setup,kcalls_per_s,cpu_us_per_call,made,complete,incomplete,lost,recorder_cpu_s,peak_mib,disk_mib"
	for ((round = 0; round < rounds; round++)); do
		echo "none,$(serve "$calls"),,,,,,"
		for setup in "${setups[@]}"; do
			IFS='|' read -r name flags <<<"$setup"
			read -r -a words <<<"$flags"
			rate=$(serve "$calls" record setup "${words[@]}" --)
			IFS=, read -r _ _ lost cpu peak disk <<<"$(facts setup)"
			case $name in
			*counters) rows=$(value setup "SELECT sum(count)::BIGINT, 0 FROM counters") ;;
			*raw) rows=$(value setup "SELECT count(*), 0 FROM syscalls WHERE comm LIKE 'server-%' AND class != 'memory'") ;;
			# Without a part of what was asked for, by the paper's definition: here the content.
			*hash* | *plain) rows=$(value setup "SELECT count(*) FILTER (content_bytes IS NOT NULL OR coalesce(bytes, 0) = 0 OR class != 'data'),
				count(*) FILTER (content_bytes IS NULL AND bytes > 0 AND class = 'data') FROM syscalls
				WHERE comm LIKE 'server-%' AND class != 'memory'") ;;
			*) rows=$(value setup "SELECT count(path), count(*) - count(path) FROM syscalls
				WHERE comm LIKE 'server-%' AND class != 'memory'") ;;
			esac
			echo "\"$name\",$rate,$rows,$lost,$cpu,$peak,$disk"
		done
		for other in "${others[@]}"; do
			# Some are slow: fewer calls are enough for a rate.
			rate=$(serve "$((calls / 10))" under "$other" "$work/trace")
			cp -- "$work/errors" "$work/trace.errors"
			IFS=, read -r events lost <<<"$(traced "$other" "$work/trace")"
			echo "$other,$rate,$events,0,$lost,,,$(mib "$work/trace")"
		done
	done
} >"$work/rounds.csv"

heading "Throughput and stored calls"
cat >"$work/paper.csv" <<'CSV'
setup,paper_setup,paper_percent,paper_lost
none,vanilla (164 Kops/s),100,
fathom raw,DIO raw to disk,50,0
fathom fds,DIO detailed fds,50,0
fathom full,DIO detailed all,60,51 to 85 M
"fathom full, hash in user",DIO uhash,60,51 to 85 M
"fathom full, hash in kernel",DIO khash,34,0
"fathom full, plain",Sysdig plain,78,
strace,Strace raw,27,0
strace-content,Strace plain,18,0
bpftrace,Sysdig all,88,
CSV
figure medians kcalls_per_s cpu_us_per_call made complete incomplete lost recorder_cpu_s peak_mib disk_mib <"$work/rounds.csv" |
	figure ratio kcalls_per_s setup none percent |
	figure ratio cpu_us_per_call setup none cpu_percent | figure beside "$work/paper.csv" setup >"$work/table.csv"
figure table <"$work/table.csv"
sed '2d' "$work/table.csv" | figure bars "$(picture throughput)" --x-column series --series-column setup \
	--y-column percent --title "Throughput of the file server under each setup" --y "percent of untraced"
where_sessions_are
