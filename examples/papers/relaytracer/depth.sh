#!/usr/bin/env bash
# ReLayTracer, table 2: the bandwidth that 8 threads lose at each depth of probes, with random reads
# from a device; and with sequential reads, which the page cache serves.
#
#   examples/papers/relaytracer/depth.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin relaytracer-depth "$@"
need command fio fio
rounds=${quick:+1}
rounds=${rounds:-3}
reads=${quick:+200}
reads=${reads:-3000}

depths=(none syscall "syscall,pagecache" "syscall,pagecache,fs" "syscall,pagecache,fs,block"
	"syscall,pagecache,fs,block,sched" "syscall,pagecache,fs,block,sched,irq")
[ -z "$quick" ] || depths=(none syscall "syscall,pagecache,fs,block,sched,irq")

fio --name=lay-out --filename="$work/data" --size=64m --rw=write --bs=1m --end_fsync=1 --output=/dev/null

# read_file DEPTH OPTIONS...: MiB per second of 8 threads.
read_file() {
	local depth=$1 before=()
	shift
	[ "$depth" = none ] || before=(record depth --layers "$depth" --)
	"${before[@]}" fio --name=reader --filename="$work/data" --bs=4k --ioengine=psync --size=64m --thread --numjobs=8 \
		--group_reporting --output-format=json --output="$work/fio.json" "$@"
	figure fio "$work/fio.json" | cut -d, -f 2
}

hooks() { grep -c '"attached": true' "$(fathom_on depth)/session.json"; }

for load in random sequential; do
	# As many reads of each thread; the cached ones take microseconds.
	flags=(--rw=randread --direct=1 --number_ios="$reads")
	[ "$load" = random ] || flags=(--rw=read --invalidate=0 --number_ios="$((reads * 5))")
	cat "$work/data" >/dev/null
	{
		echo "depth,hooks,mib_per_s,lost"
		for ((round = 0; round < rounds; round++)); do
			for depth in "${depths[@]}"; do
				rate=$(read_file "$depth" "${flags[@]}")
				if [ "$depth" = none ]; then
					echo "none,0,$rate,"
				else
					echo "\"$depth\",$(hooks),$rate,$(value depth "SELECT lost FROM session")"
				fi
			done
		done
	} >"$work/rounds.csv"
	heading "Bandwidth, $load reads of 8 threads"
	figure medians mib_per_s lost <"$work/rounds.csv" | figure ratio mib_per_s depth none percent |
		tee "$work/table.csv" | figure table
	figure lines "$(picture "$load")" --x-column hooks --y-column percent --title "Bandwidth of 8 threads, $load reads" \
		--x "hooks" --y "percent of untraced" <"$work/table.csv"
done
cat <<'TEXT'

ReLayTracer, random reads: 3 % less at depth 1 (2 probes), 6.1 % at depth 4 (9), 10.7 % at depth 8 (15).
Sequential reads: no difference.
TEXT
where_sessions_are
