#!/usr/bin/env bash
# EZIOTracer, the cost of events on the user's side: what a call of fread of 16 bytes takes without
# tracing, recorded as EZTrace does (a library that is preloaded), and recorded by uprobes; 1 to 64
# threads.
#
#   examples/papers/eziotracer/calls.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin eziotracer-calls "$@"
calls=$(compiled calls)

counts=(1 2 4 8 16 32 64)
rounds=5
all=640000
if [ -n "$quick" ]; then
	counts=(1 4)
	rounds=1
	all=8000
fi
# Of system calls only one that the program never makes.
only=(--library libc:fread --library-budget off --syscalls syncfs --layers syscall)

heading "Processor time per call"
echo "threads,way,ns_per_call,recorded,lost" >"$work/calls.csv"
for threads in "${counts[@]}"; do
	each=$((all / threads))
	for ((round = 0; round < rounds; round++)); do
		echo "$threads,untraced,$("$calls" "$threads" "$each" 16),0,0" >>"$work/calls.csv"
		for way in preload uprobe; do
			ns=$(record "$way" "${only[@]}" --library-by "$way" -- "$calls" "$threads" "$each" 16)
			echo "$threads,$way,$ns,$(value "$way" "SELECT (SELECT count(*) FROM user_calls),
				(SELECT coalesce(sum(count), 0)::BIGINT FROM losses WHERE syscall = 'user_call')")" >>"$work/calls.csv"
		done
	done
done
figure medians ns_per_call recorded lost <"$work/calls.csv" | tee "$work/table.csv" | figure table
figure lines "$(picture calls)" --x-column threads --y-column ns_per_call --series-column way --log-x --log-y \
	--title "Processor time per fread of 16 bytes" --x "threads" --y "ns" <"$work/table.csv"
cat <<'TEXT'

EZTrace loads a library of its own (LD_PRELOAD), whose functions stand in front of those of the C
library; fathom's --library-by preload does the same without any library. The paper's cost in
throughput is in threads.sh.
TEXT
where_sessions_are
