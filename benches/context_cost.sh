#!/usr/bin/env bash
# What --otel-context costs a program per call: processor time per call of a loop of pread, with no span
# active, all calls in one span, and each call in another one; untraced, recorded without the option, and
# with it. Least of the rounds, as other work on the machine only adds to it, and in parentheses the calls
# that were lost. Needs root, a C compiler, and a release build (./do build).
#
#   benches/context_cost.sh [ROUNDS] [CALLS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rounds=${1:-7} calls=${2:-200000}
dir=$(mktemp -d "/var/tmp/fathom-contexts.XXXXXX")
trap 'rm -rf "$dir"' EXIT
fathom=$PWD/target/release/fathom
cc -O2 -o "$dir/program" -Wl,--export-dynamic-symbol=otel_thread_ctx_v1 benches/context_cost.c
echo data >"$dir/data"

for mode in none same changed; do
	for how in untraced recorded --otel-context; do
		for ((round = 0; round < rounds; round++)); do
			record=("$fathom" record --quiet --force --ring-mib 128 -o "$dir/session")
			case $how in
			untraced) record=() ;;
			recorded) record+=(--) ;;
			*) record+=("$how" --) ;;
			esac
			ns=$("${record[@]}" "$dir/program" "$mode" "$calls" "$dir/data")
			lost=0
			[[ $how == untraced ]] || lost=$("$fathom" query "$dir/session" --format csv \
				"SELECT coalesce(sum(count), 0)::BIGINT FROM losses" | tail -n 1)
			echo "$ns $lost"
		done | sort -n | awk -v m="$mode" -v h="$how" \
			'NR == 1 { least = $1 } { lost += $2 } END { printf "%-8s %-15s %7.1f ns  (%d)\n", m, h, least, lost }'
	done
done
