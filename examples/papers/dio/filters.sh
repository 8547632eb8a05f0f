#!/usr/bin/env bash
# DIO, figure 19: what filters save. The calls that pass a filter are counted by the file server
# itself.
#
#   examples/papers/dio/filters.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin dio-filters "$@"
server=$(compiled fileserver)
rounds=${quick:+1}
rounds=${rounds:-5}
calls=${quick:+3000}
calls=${calls:-100000}

setups=(
	"all calls|"
	"passive: rename|--syscalls rename"
	"open, read, write, close|--syscalls open,openat,read,write,close"
	"read|--syscalls read"
	"one thread|--comm server-0"
	"the files' directory|--path $work/files"
	"another directory|--path /nonexistent"
	"errors only|--errors-only"
)

# serve COMMAND...: thousands of calls per second, the server's processor time per call, how many there were, the reads, and the calls of one thread.
serve() {
	rm -rf -- "$work/files"
	mkdir -- "$work/files"
	"$@" "$server" "$work/files" 4 "$calls" | awk -F, '{ printf "%.1f,%.2f,%d,%d,%d", $1 / $2 / 1000, $5 / $1 * 1e6, $1, $3, $4 }'
}

{
	echo "filter,kcalls_per_s,cpu_us_per_call,made,reads,of_one_thread,seen,lost,recorder_cpu_s,disk_mib"
	for ((round = 0; round < rounds; round++)); do
		echo "none,$(serve),,,,"
		for setup in "${setups[@]}"; do
			IFS='|' read -r name flags <<<"$setup"
			read -r -a words <<<"$flags"
			made=$(serve record filter "${words[@]}" --)
			IFS=, read -r seen _ lost cpu _ disk <<<"$(facts filter)"
			echo "\"$name\",$made,$seen,$lost,$cpu,$disk"
		done
	done
} >"$work/rounds.csv"

heading "Filters"
cat >"$work/paper.csv" <<'CSV'
filter,paper
none,164 Kops/s
all calls,"detailed all: 78 %, 42 M complete, 158 M lost of 210 M"
passive: rename,"passive: 100 %, 0 calls"
"open, read, write, close","orwc: 84 %, 51 M complete, 94 M lost of 145 M"
one thread,"tid: 72 %, all of 35 M"
read,"read: 78 %, all of 27 M"
CSV
figure medians kcalls_per_s cpu_us_per_call made reads of_one_thread seen lost recorder_cpu_s disk_mib <"$work/rounds.csv" |
	figure ratio kcalls_per_s filter none percent | figure ratio cpu_us_per_call filter none cpu_percent | figure beside "$work/paper.csv" filter >"$work/table.csv"
figure table <"$work/table.csv"
sed '2d' "$work/table.csv" | figure bars "$(picture filters)" --x-column series --series-column filter \
	--y-column percent --title "Throughput of the file server with filters" --y "percent of untraced"
where_sessions_are
