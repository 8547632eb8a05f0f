#!/usr/bin/env bash
# Threads that write side by side, 4 KiB at a time, through the page cache and past it: what
# reaches each level of the kernel, how much of their time threads lose to each other (the
# contention score SCI), and what the layers say about the cause.
#
#   examples/thread-contention/run.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin thread-contention "$@"
need command fio fio

counts=(1 2 4 8 16 32 64)
declare -A sizes=([buffered]=8m [direct]=1m)
if [ -n "$quick" ]; then
	counts=(1 4)
	sizes=([buffered]=1m [direct]=256k)
fi

# write SESSION THREADS SIZE FIO'S OPTIONS: each thread writes a file of its own.
write() {
	local session=$1 threads=$2 size=$3
	shift 3
	record "$session" -- fio --name=writer --directory="$work" --rw=write --bs=4k --ioengine=sync \
		--size="$size" --thread --numjobs="$threads" --fallocate=none --output-format=json \
		--output="$work/fio.json" "$@"
	rm -f "$work"/writer.*
}

# The threads that write: SQL for their ids.
writers="(SELECT tid FROM syscalls WHERE syscall = 'write' AND path LIKE '%/writer.%' GROUP BY tid)"

for mode in buffered direct; do
	heading "$mode"
	{
		echo "threads,seen,lost,user_writes,pages_dirtied,file_system_parts,block_requests,top_score,mean_score,in_writes_percent"
		for threads in "${counts[@]}"; do
			flags=()
			[ "$mode" = buffered ] || flags=(--direct=1)
			write "$mode-$threads" "$threads" "${sizes[$mode]}" "${flags[@]}"
			value "$mode-$threads" "
				SELECT $threads, (SELECT seen FROM session), (SELECT lost FROM session),
					(SELECT count(*) FROM syscalls WHERE syscall = 'write' AND tid IN $writers AND path LIKE '%/writer.%'),
					(SELECT coalesce(sum(dirtied), 0)::BIGINT FROM pagecache WHERE tid IN $writers),
					(SELECT count(*) FROM slices WHERE layer = 'fs' AND rid IN
						(SELECT rid FROM syscalls WHERE syscall = 'write' AND tid IN $writers)),
					(SELECT count(DISTINCT block_id) FROM bios WHERE submit_rid IN (SELECT rid FROM syscalls WHERE tid IN $writers)),
					(SELECT round(max(score), 3) FROM contention),
					(SELECT round(avg(score), 3) FROM contention WHERE tid IN $writers),
					(SELECT round(100 * sum(t) / sum(life_ns))::INTEGER FROM contention JOIN (SELECT
						tid, sum(dur_ns) AS t FROM syscalls WHERE syscall = 'write' AND tid IN $writers
						GROUP BY tid) USING (tid))"
		done
	} >"$work/$mode.csv"
	column -s, -t "$work/$mode.csv" 2>/dev/null || cat "$work/$mode.csv"
	last=$mode-${counts[-1]}
	echo
	echo "Where the writes of ${counts[-1]} threads spent their time:"
	echo
	table "$last" "
		SELECT layer, name, count(*) AS visits, sum(self_ns)::BIGINT AS self_ns,
			round(100 * sum(self_ns) / sum(sum(self_ns)) OVER ())::INTEGER AS percent
		FROM all_slices SEMI JOIN (SELECT rid FROM syscalls WHERE syscall = 'write' AND tid IN $writers) USING (rid)
		GROUP BY layer, name ORDER BY self_ns DESC LIMIT 8"
	echo
	echo "What they waited for, and who woke them:"
	echo
	table "$last" "
		SELECT reason, coalesce(waker, '') AS waker, count(*) AS waits, sum(dur_ns)::BIGINT AS total_ns,
			sum(run_queue_ns)::BIGINT AS run_queue_ns, max(dur_ns) AS max_ns
		FROM waits SEMI JOIN (SELECT rid FROM syscalls WHERE syscall = 'write' AND tid IN $writers) USING (rid)
		GROUP BY 1, 2 ORDER BY total_ns DESC LIMIT 6"
done
[ -n "$quick" ] || printf '\nSessions are in %s: fathom report, fathom query, fathom ui.\n' "$sessions"
