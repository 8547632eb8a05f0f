#!/usr/bin/env bash
# DIO, figure 14: the size of the ring against throughput, stored and lost calls, and memory.
#
#   examples/papers/dio/rings.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin dio-rings "$@"
server=$(compiled fileserver)
rounds=${quick:+1}
rounds=${rounds:-3}
calls=${quick:+20000}
calls=${calls:-100000}
sizes=(1 4 16 32 64 256)
[ -z "$quick" ] || sizes=(1 32)

# serve COMMAND...: thousands of calls per second, the server's processor time per call, and how many there were.
serve() {
	rm -rf -- "$work/files"
	mkdir -- "$work/files"
	"$@" "$server" "$work/files" 4 "$calls" | awk -F, '{ printf "%.1f,%.2f,%d", $1 / $2 / 1000, $5 / $1 * 1e6, $1 }'
}

{
	echo "ring_mib_per_cpu,kcalls_per_s,cpu_us_per_call,made,seen,stored,lost,peak_mib"
	for ((round = 0; round < rounds; round++)); do
		echo "none,$(serve),,,,"
		for size in "${sizes[@]}"; do
			rate=$(serve record ring --ring-mib "$size" --)
			IFS=, read -r seen stored lost _ peak _ <<<"$(facts ring)"
			echo "$size,$rate,$seen,$stored,$lost,$peak"
		done
	done
} >"$work/rounds.csv"

heading "Size of the ring"
cat >"$work/paper.csv" <<'CSV'
ring_mib_per_cpu,paper
none,164 Kops/s
1,
4,"DIO, 16 MiB in total: 79 %, 38 M of 210 M calls saved"
16,
32,
64,
256,"DIO, 1024 MiB in total: 77 %, 52 M saved"
CSV
figure medians kcalls_per_s cpu_us_per_call made seen stored lost peak_mib <"$work/rounds.csv" |
	figure ratio kcalls_per_s ring_mib_per_cpu none percent | figure ratio cpu_us_per_call ring_mib_per_cpu none cpu_percent | figure beside "$work/paper.csv" ring_mib_per_cpu |
	tee "$work/table.csv" | figure table
echo
sed '2d' "$work/table.csv" | figure lines "$(picture rings)" --x-column ring_mib_per_cpu --y-column peak_mib --log-x \
	--title "Memory of the recorder by size of the ring" --x "MiB per CPU" --y "MiB"
where_sessions_are
