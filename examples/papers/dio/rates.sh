#!/usr/bin/env bash
# DIO, figure 18: the rate of calls at which a recording begins to lose some, and at which the
# program becomes slower.
#
#   examples/papers/dio/rates.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin dio-rates "$@"
server=$(compiled fileserver)
rates=(25000 50000 100000 150000 200000 0)
seconds=4
if [ -n "$quick" ]; then
	rates=(20000 0)
	seconds=1
fi
setups=("none|" "raw|--detail raw" "full|--detail full" "hash in kernel|--content hash")

# serve CALLS RATE COMMAND...: thousands of calls per second, and how many there were.
serve() {
	local each=$1 rate=$2
	shift 2
	rm -rf -- "$work/files"
	mkdir -- "$work/files"
	"$@" "$server" "$work/files" 4 "$each" "$rate" | awk -F, '{ printf "%.1f,%d", $1 / $2 / 1000, $1 }'
}

{
	echo "wanted,setup,kcalls_per_s,made,stored,lost"
	for rate in "${rates[@]}"; do
		for setup in "${setups[@]}"; do
			IFS='|' read -r name flags <<<"$setup"
			read -r -a words <<<"$flags"
			# As fast as possible: as many calls as at the highest rate.
			each=$((${rate/#0/200000} * seconds / 4))
			wanted=${rate/#0/unlimited}
			if [ "$name" = none ]; then
				echo "$wanted,$name,$(serve "$each" "$rate"),,"
			else
				made=$(serve "$each" "$rate" record rate "${words[@]}" --)
				IFS=, read -r _ stored lost _ <<<"$(facts rate)"
				echo "$wanted,$name,$made,$stored,$lost"
			fi
		done
	done
} >"$work/table.csv"

heading "Rate of calls"
figure table <"$work/table.csv"
cat <<'TEXT'

DIO: all calls complete up to 25,000 per second; incomplete ones from 30,000, lost ones from 35,000
(3 to 5 M of 42 M). From 100,000 per second, 15 to 51 % slower, and 21 to 182 M lost.
TEXT
grep -v unlimited "$work/table.csv" | figure lines "$(picture rates)" --x-column wanted --y-column kcalls_per_s \
	--series-column setup --title "Rate that the file server reaches" --x "calls per second that it tries" \
	--y "thousand calls per second"
where_sessions_are
