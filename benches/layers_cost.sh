#!/usr/bin/env bash
# What each depth of --layers costs, as a multiple of the untraced run right before it:
# reads of cached data (processor time of the program, which bears other work on the
# machine) and direct random reads from a device (wall time of a fixed number of reads).
# Medians over the rounds. Needs root, fio, and a release build (./do build).
#
#   benches/layers_cost.sh [ROUNDS] [DIR ON A DEVICE]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rounds=${1:-7}
dir=$(mktemp -d "${2:-/var/tmp}/fathom-layers.XXXXXX")
trap 'rm -rf "$dir"' EXIT
fathom=$PWD/target/release/fathom

depths=(
	syscall
	"syscall,pagecache"
	"syscall,pagecache,fs"
	"syscall,pagecache,fs,block"
	"syscall,pagecache,fs,block,sched"
	all
)
loads=(
	"cached 4K|cpu|--rw=randread --size=64m --io_size=400m --ioengine=psync"
	"direct 4K|wall|--rw=randread --size=64m --number_ios=2000 --ioengine=psync --direct=1"
	"direct 4K, io_uring|wall|--rw=randread --size=64m --number_ios=4000 --ioengine=io_uring --iodepth=8 --direct=1"
)

# Seconds of one run of the fio OPTIONS under the command that follows.
run() {
	local what=$1 options=$2
	shift 2
	"$@" bash -c "TIMEFORMAT='%R %U %S'; time fio --name=j --filename=$dir/data --bs=4k --thread \
		--invalidate=0 --output=/dev/null $options" 2>&1 | tail -n 1 |
		if [[ $what == cpu ]]; then awk '{ print $2 + $3 }'; else awk '{ print $1 }'; fi
}

head -c 64M /dev/urandom >"$dir/data"
sync "$dir/data"
for load in "${loads[@]}"; do
	IFS='|' read -r name what options <<<"$load"
	: >"$dir/runs"
	cat "$dir/data" >/dev/null
	for ((round = 0; round < rounds; round++)); do
		for depth in "${depths[@]}"; do
			none=$(run "$what" "$options")
			traced=$(run "$what" "$options" "$fathom" record --quiet --force -o "$dir/session" \
				--layers "$depth" --)
			lost=$("$fathom" query "$dir/session" --format csv \
				"SELECT coalesce(sum(count), 0)::BIGINT FROM losses" | tail -n 1)
			echo "$depth $none $traced $lost" >>"$dir/runs"
		done
	done
	echo "$name:"
	for depth in "${depths[@]}"; do
		awk -v d="$depth" '$1 == d { print $3 / $2, $4 }' "$dir/runs" | sort -n |
			awk -v d="$depth" '{ ratio[NR] = $1; lost += $2 }
				END { printf "  %-36s %.3f  (%.3f to %.3f), %d lost\n", d,
					ratio[int((NR + 1) / 2)], ratio[1], ratio[NR], lost }'
	done
done
