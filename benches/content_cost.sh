#!/usr/bin/env bash
# What --detail and --content cost fio and dd on files in memory: CPU time of the
# program for the same work, as a multiple of what it takes untraced. CPU time
# bears other work on the machine better than throughput does. In each round
# every mode runs once, after an untraced run of its own; shown are medians
# over the rounds. Needs root, fio, and a release build (./do build).
#
#   benches/content_cost.sh [ROUNDS] [DIR]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rounds=${1:-7}
dir=$(mktemp -d "${2:-/dev/shm}/fathom-content.XXXXXX")
sessions=$(mktemp -d "${TMPDIR:-/tmp}/fathom-content.XXXXXX")
trap 'rm -rf "$dir" "$sessions"' EXIT
fathom=$PWD/target/release/fathom

modes=(
	"raw|--detail raw"
	"fds|--detail fds"
	"full|--detail full"
	"hash, kernel|--content hash"
	"hash, user|--content hash --hash-in user"
	"plain|--content plain"
)
loads=(
	"fio randread 4K|randread|4k|800m"
	"fio randrw 4K|randrw|4k|800m"
	"fio read 64K|read|64k|4g"
	"fio write 64K|write|64k|4g"
	"dd 64K|dd|64k|0"
)

# CPU seconds of one run of LOAD BLOCK BYTES under the command that follows.
run() {
	local load=$1 block=$2 bytes=$3 program
	shift 3
	if [[ $load == dd ]]; then
		program="dd if=/dev/zero of=$dir/copy bs=$block count=8192 conv=notrunc status=none"
	else
		program="fio --name=j --filename=$dir/data --rw=$load --bs=$block --size=64m
			--io_size=$bytes --ioengine=psync --thread --fallocate=none --output=/dev/null"
	fi
	program=${program//[$'\n\t']/ }
	"$@" bash -c "TIMEFORMAT='%U %S'; time $program" 2>&1 | awk 'NF == 2 { print $1 + $2 }' |
		tail -n 1
}

head -c 64M /dev/urandom >"$dir/data"
# Pages of tmpfs are made before anything is measured.
head -c 512M /dev/zero >"$dir/copy"
for load in "${loads[@]}"; do
	IFS='|' read -r name rw block bytes <<<"$load"
	: >"$sessions/runs"
	for ((round = 0; round < rounds; round++)); do
		for mode in "${modes[@]}"; do
			IFS='|' read -r label options <<<"$mode"
			none=$(run "$rw" "$block" "$bytes")
			read -r -a words <<<"$options"
			traced=$(run "$rw" "$block" "$bytes" "$fathom" record --quiet --force \
				-o "$sessions/s.fathom" "${words[@]}" --)
			# Calls lost, and of a hundred that moved data those with content.
			kept=$("$fathom" query "$sessions/s.fathom" --format csv "SELECT lost,
				(SELECT 100.0 * count(content_bytes) / count(*) FROM syscalls
				 WHERE class = 'data' AND bytes > 0) FROM session" | tail -n 1)
			echo "$label|$none|$traced|${kept/,/|}" >>"$sessions/runs"
		done
	done
	printf '%s\n' "$name"
	for mode in "${modes[@]}"; do
		label=${mode%%|*}
		awk -F'|' -v label="$label" '$1 == label { print $3 / $2, $4, $5 }' "$sessions/runs" |
			sort -n | awk -v label="$label" '
				{ ratio[NR] = $1; lost += $2; kept += $3 }
				END { printf "  %-14s %.2f  (%.2f to %.2f)  lost %d, with content %.0f %%\n",
					label, ratio[int((NR + 1) / 2)], ratio[1], ratio[NR], lost, kept / NR }'
	done
done
