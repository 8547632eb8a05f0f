#!/usr/bin/env bash
# Whether the blame is true: in each round a victim reads from the device, or computes, beside
# neighbors. The neighbor that view blame holds responsible for most of its waits is stopped, and the victim does the same
# work again: at least 80 % of the blamed time should come back. Needs root, fio, two processors,
# and a release build (./do build); DIR is on a device.
#
#   benches/blame.sh [ROUNDS] [DIR]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rounds=${1:-10}
dir=$(mktemp -d "${2:-/var/tmp}/fathom-blame.XXXXXX")
trap 'rm -rf "$dir"' EXIT
fathom=$PWD/target/release/fathom

for file in victim writer reader; do
	fio --name=prepare --filename="$dir/$file.data" --size=256m --rw=write --bs=1m --direct=1 \
		--end_fsync=1 --output=/dev/null
done
# Programs are known by their names.
for name in disk-victim writer reader; do cp -- "$(command -v fio)" "$dir/$name"; done
cp -- "$(readlink -f /bin/sh)" "$dir/spinner"
cp -- "$(command -v sha256sum)" "$dir/cpu-victim"

# round.sh DIR VICTIM NEIGHBOUR...: the time of the victim beside the neighbors goes to DIR/ms.
cat >"$dir/round.sh" <<'EOF'
dir=$1 victim=$2
shift 2
pids=()
for neighbor in "$@"; do
	case $neighbor in
	writer) set -- --rw=randwrite --bs=256k --ioengine=libaio --iodepth=16 ;;
	reader) set -- --rw=randread --bs=4k --ioengine=psync --thinktime=2ms ;;
	esac
	case $neighbor in
	# On the victim's processor.
	spinner) taskset -c 1 "$dir/spinner" -c 'while :; do :; done' & ;;
	*) taskset -c 0 "$dir/$neighbor" --name=job --thread --filename="$dir/$neighbor.data" --size=256m \
		--direct=1 --time_based --runtime=600 --output=/dev/null "$@" & ;;
	esac
	pids+=($!)
done
sleep 1
case $victim in
disk-victim) set -- --name=job --thread --filename="$dir/victim.data" --size=256m --direct=1 --rw=randread \
	--bs=4k --ioengine=psync --number_ios=5000 --output=/dev/null ;;
cpu-victim) set -- "$dir/victim.data" "$dir/victim.data" ;;
esac
began=${EPOCHREALTIME/./}
taskset -c 1 "$dir/$victim" "$@"
echo $(((${EPOCHREALTIME/./} - began) / 1000)) >"$dir/ms"
kill "${pids[@]}"
wait
EOF

# beside VICTIM NEIGHBOUR...: milliseconds of the victim beside the neighbors, recorded.
beside() {
	"$fathom" record --quiet --force --output "$dir/session" -- bash "$dir/round.sh" "$dir" "$@" >"$dir/out" 2>&1 ||
		{ cat "$dir/out" >&2 && exit 1; }
	cat "$dir/ms"
}

scenes=("disk-victim writer reader" "cpu-victim reader spinner" "disk-victim spinner reader writer")
printf '%-34s %-8s %10s %8s %8s %8s\n' scene culprit "blamed ms" with without "back, %"
good=0
for ((round = 0; round < rounds; round++)); do
	scene=${scenes[round % ${#scenes[@]}]}
	read -r victim neighbors <<<"$scene"
	# shellcheck disable=SC2086 # words
	with=$(beside "$victim" $neighbors)
	IFS=, read -r culprit blamed < <("$fathom" query "$dir/session" --format csv "
		SELECT culprit_process, round(sum(time_ns) / 1e6, 1) FROM blame
		WHERE victim_process = '$victim' AND culprit_process IN ('writer', 'reader', 'spinner')
		GROUP BY 1 ORDER BY 2 DESC LIMIT 1" | tail -n 1)
	# shellcheck disable=SC2086
	without=$(beside "$victim" ${neighbors/$culprit/})
	back=$(awk -v a="$with" -v b="$without" -v c="$blamed" 'BEGIN { printf "%.0f", 100 * (a - b) / c }')
	((back < 80)) || good=$((good + 1))
	printf '%-34s %-8s %10s %8s %8s %8s\n' "$scene" "$culprit" "$blamed" "$with" "$without" "$back"
done
echo "at least 80 % came back in $good of $rounds rounds"
