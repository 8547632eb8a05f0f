#!/usr/bin/env bash
# Where single reads spend their time, layer by layer: in the page cache, and from a device;
# threads that pay for others' interrupts; what each depth of recording costs.
#
#   examples/request-breakdown/run.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin request-breakdown "$@"
need command fio fio

size=${quick:+4m}
size=${size:-16m}
reads=${quick:+300}
reads=${reads:-4000}
windows=${quick:+3}
windows=${windows:-15}

fio --name=lay-out --filename="$work/data" --size="$size" --rw=write --bs=1m --end_fsync=1 \
	--output=/dev/null

# The requests of $1 as bars: a letter is $2 ns, and says in which layer they passed.
# Around the slowest of those that the condition $3 selects.
bars() {
	table "$1" "
		WITH reads AS (
			SELECT rid, dur_ns, row_number() OVER (ORDER BY ts_ns) AS n
			FROM syscalls SEMI JOIN pagecache USING (rid)
			WHERE syscall = 'pread64' AND file_id IN (SELECT file_id FROM files WHERE path LIKE '%/data')
		),
		chosen AS (
			SELECT * FROM reads WHERE n BETWEEN
				(SELECT n FROM reads WHERE $3 ORDER BY dur_ns DESC LIMIT 1) - 12 AND
				(SELECT n FROM reads WHERE $3 ORDER BY dur_ns DESC LIMIT 1) + 12
		),
		parts AS (
			SELECT rid, layer, sum(self_ns) AS ns,
				CASE layer WHEN 'syscall' THEN 's' WHEN 'fs' THEN 'f' WHEN 'block' THEN 'b'
					WHEN 'device' THEN 'D' WHEN 'sched' THEN 'w' WHEN 'irq' THEN 'i' ELSE '?' END AS letter
			FROM all_slices SEMI JOIN chosen USING (rid) GROUP BY rid, layer
		)
		SELECT n AS request, any_value(dur_ns) AS dur_ns,
			string_agg(repeat(letter, least(90, round(ns / $2)::BIGINT)), '' ORDER BY instr('sfbDwi', letter)) AS layers
		FROM chosen JOIN parts USING (rid) GROUP BY n ORDER BY n"
	echo
	echo "s: in the call, f: file system, b: block layer, D: device, w: off the CPU, i: interrupts;" \
		"a letter is $2 ns"
}

# Where the slowest hundredth of the reads of $1 spent more time than the median one.
causes() {
	table "$1" "
		WITH reads AS (
			SELECT rid, dur_ns, percent_rank() OVER (ORDER BY dur_ns) AS rank
			FROM syscalls SEMI JOIN pagecache USING (rid) WHERE syscall = 'pread64'
		)
		SELECT layer, name,
			round(sum(self_ns) FILTER (rank < 0.99) / (SELECT count(*) FROM reads WHERE rank < 0.99))::BIGINT
				AS usual_ns,
			round(sum(self_ns) FILTER (rank >= 0.99) / (SELECT count(*) FROM reads WHERE rank >= 0.99))::BIGINT
				AS slowest_hundredth_ns
		FROM all_slices JOIN reads USING (rid)
		GROUP BY layer, name ORDER BY slowest_hundredth_ns DESC NULLS LAST LIMIT 10"
}

heading "Cached sequential reads"
cat "$work/data" >/dev/null
record cached -- fio --name=reader --filename="$work/data" --rw=read --bs=4k --ioengine=psync \
	--size="$size" --invalidate=0 --number_ios="$reads" --output=/dev/null
balance cached
echo
table cached "SELECT count(*) AS reads, median(dur_ns)::BIGINT AS median_ns,
	quantile_disc(dur_ns, 0.99) AS p99_ns, max(dur_ns) AS max_ns,
	count(*) FILTER (rid IN (SELECT rid FROM pagecache WHERE misses > 0)) AS with_misses
	FROM syscalls WHERE syscall = 'pread64' AND path LIKE '%/data'"
echo
bars cached 500 "true"
echo
causes cached

heading "Random reads, mostly from the device"
record random -- fio --name=reader --filename="$work/data" --rw=randread --bs=4k --ioengine=psync \
	--size="$size" --invalidate=1 --number_ios="$reads" --output=/dev/null
balance random
echo
table random "SELECT if(misses > 0, 'from the device', 'from the page cache') AS reads, count(*) AS count,
	median(dur_ns)::BIGINT AS median_ns, quantile_disc(dur_ns, 0.99) AS p99_ns, max(dur_ns) AS max_ns
	FROM syscalls JOIN pagecache USING (rid) WHERE syscall = 'pread64' GROUP BY 1 ORDER BY 1"
echo
bars random 5000 "true"
echo
causes random

heading "Four threads, one file: tails and interrupts by thread"
record threads -- fio --name=reader --filename="$work/data" --rw=randread --bs=4k --ioengine=psync \
	--size="$size" --direct=1 --thread --numjobs=4 --number_ios="$reads" --output=/dev/null
balance threads
echo
table threads "
	WITH reads AS (
		SELECT tid, dur_ns, ntile($windows) OVER (ORDER BY ts_ns) AS \"window\",
			'T' || dense_rank() OVER (ORDER BY tid) AS thread
		FROM syscalls WHERE syscall = 'pread64' AND path LIKE '%/data'
			AND tid IN (SELECT tid FROM syscalls GROUP BY tid HAVING count(*) FILTER (syscall = 'pread64') > 9)
	)
	SELECT \"window\", $(for thread in 1 2 3 4; do
		printf "quantile_disc(dur_ns, 0.99) FILTER (thread = 'T%s') AS T%s, " "$thread" "$thread"
	done) count(*) AS reads
	FROM reads GROUP BY \"window\" ORDER BY \"window\""
echo "(p99 of each thread, ns, in windows of equal numbers of requests)"
echo
table threads "
	SELECT tid, count(rid) AS reads, coalesce(sum(n), 0)::BIGINT AS interrupts,
		coalesce(sum(irq_ns), 0)::BIGINT AS interrupt_ns, sum(dur_ns)::BIGINT AS read_ns
	FROM syscalls LEFT JOIN (SELECT rid, count(*) AS n, sum(dur_ns) AS irq_ns FROM irqs GROUP BY rid) USING (rid)
	WHERE syscall = 'pread64' GROUP BY tid HAVING count(*) > 9 ORDER BY interrupt_ns DESC"

heading "What each depth costs"
if [ -n "$quick" ]; then
	echo "left out: it takes minutes"
else
	"$root/benches/layers_cost.sh" 5 "$(dirname -- "$work")"
	echo
	echo "Sessions are in $sessions: fathom report, fathom query, fathom ui."
fi
