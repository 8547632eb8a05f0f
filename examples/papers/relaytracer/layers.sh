#!/usr/bin/env bash
# ReLayTracer, figures 1, 5, 6 and 7 and table 1: the time of each read by layer, in order; cached
# reads with a perf counter; the reads around a peak; the tails of four threads in windows of
# equal numbers of reads, and the interrupts that each of them served.
#
#   examples/papers/relaytracer/layers.sh [--quick] [DIR ON A DEVICE]
set -euo pipefail
# shellcheck source=examples/papers/lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/../lib.sh"
begin relaytracer-layers "$@"
need command fio fio
size=${quick:+4m}
size=${size:-64m}
reads=${quick:+300}
reads=${reads:-8000}
windows=${quick:+3}
windows=${windows:-15}

fio --name=lay-out --filename="$work/data" --size="$size" --rw=write --bs=1m --end_fsync=1 --output=/dev/null

# The paper's cycles per instruction, where the processor counts them; else what the kernel counts.
counters=task-clock,context-switches
column=task_clock_ns
if "$fathom" doctor | grep -E '^ok +perf counters' >/dev/null; then
	counters=cycles,instructions
	column='cycles/nullif(instructions,0)'
fi

read_file() {
	local session=$1
	shift
	record "$session" --counters "$counters" -- fio --name=reader --filename="$work/data" --bs=4k --ioengine=psync \
		--size="$size" --number_ios="$reads" --output=/dev/null "$@"
}

# Reads with their number, and the time of each in each layer.
parts="
	WITH reads AS (
		SELECT rid, dur_ns, row_number() OVER (ORDER BY ts_ns) AS n FROM syscalls
		WHERE syscall = 'pread64' AND path = '$work/data'
	),
	parts AS (
		SELECT n, rid, any_value(reads.dur_ns) AS dur_ns, layer AS series, sum(self_ns) AS ns
		FROM reads JOIN all_slices USING (rid) GROUP BY n, rid, layer
	)"

# summary SESSION: percentiles of all reads, and of their time in each layer.
by_layer() {
	csv "$1" "$parts
		SELECT 'all' AS layer, count(*) AS reads, sum(dur_ns)::BIGINT AS total_ns, median(dur_ns)::BIGINT AS median_ns,
			quantile_disc(dur_ns, 0.99)::BIGINT AS p99_ns, max(dur_ns)::BIGINT AS max_ns FROM reads
		UNION ALL (SELECT series, count(*), sum(ns)::BIGINT, median(ns)::BIGINT, quantile_disc(ns, 0.99)::BIGINT, max(ns)::BIGINT
		FROM parts GROUP BY series ORDER BY sum(ns) DESC)" | figure table
}

# stacked SESSION PICTURE TITLE CONDITION
stacked() {
	csv "$1" "$parts SELECT n AS x, series, ns / 1000 AS y FROM parts WHERE $4 ORDER BY n, series" |
		figure bars "$(picture "$2")" --stacked --title "$3" --x "read" --y "µs"
}

heading "Figure 5: cached sequential reads"
cat "$work/data" >/dev/null
read_file cached --rw=read --invalidate=0
by_layer cached
echo
csv cached "
	WITH reads AS (SELECT rid, dur_ns, percent_rank() OVER (ORDER BY dur_ns) AS rank FROM syscalls
		WHERE syscall = 'pread64' AND path = '$work/data')
	SELECT if(rank < 0.99, 'usual', 'slowest hundredth') AS reads, count(*) AS count, median(dur_ns)::BIGINT AS median_ns,
		round(avg($column), 2) AS mean_of_counter FROM reads JOIN perf_counters USING (rid) GROUP BY 1 ORDER BY 1 DESC" | figure table
echo "counter: $column"
csv cached "
	WITH reads AS (SELECT rid, ts_ns, dur_ns, row_number() OVER (ORDER BY ts_ns) AS n FROM syscalls
		WHERE syscall = 'pread64' AND path = '$work/data')
	SELECT n AS x, dur_ns / 1000 AS y, 'latency' AS series FROM reads WHERE n <= 200
	UNION ALL SELECT n, $column / if('$column' = 'task_clock_ns', 1000, 1), '${column%%/*}'
	FROM reads JOIN perf_counters USING (rid) WHERE n <= 200 ORDER BY series, x" |
	figure lines "$(picture cached)" --title "Cached sequential reads" --x "read" --y "µs"
cat <<'TEXT'

ReLayTracer: usual reads 18 µs, peaks above 25 µs, and the cycles per instruction follow the latency.
TEXT

heading "Figures 1 and 6: random reads"
read_file random --rw=randread --invalidate=1
by_layer random
stacked random random "Random reads by layer" "n % greatest(1, $reads // 300) = 0"
peak="(SELECT n FROM reads WHERE n > 20 ORDER BY dur_ns DESC LIMIT 1)"
stacked random peak "Around the slowest read" "n BETWEEN $peak - 20 AND $peak + 20"
csv random "$parts SELECT n AS read, series AS layer, ns::BIGINT AS ns, dur_ns FROM parts WHERE n = $peak ORDER BY ns DESC" | figure table
cat <<'TEXT'

ReLayTracer: most of the time is disk I/O; the three largest of 40 peaks are delays of the disk, smaller
ones before and after them are delays in all six other layers.
TEXT

heading "Figure 7: p99 of four threads by window, µs"
read_file threads --rw=randread --direct=1 --thread --numjobs=4
by_thread="
	WITH threads AS (SELECT tid, row_number() OVER (ORDER BY tid) AS thread FROM syscalls
		WHERE syscall = 'pread64' AND path = '$work/data' GROUP BY tid),
	reads AS (SELECT s.*, ntile($windows) OVER (ORDER BY ts_ns) AS \"window\", 'T' || thread AS series
		FROM syscalls AS s JOIN threads USING (tid) WHERE syscall = 'pread64' AND path = '$work/data')"
csv threads "$by_thread SELECT \"window\" AS x, series, round(quantile_disc(dur_ns, 0.99) / 1000)::BIGINT AS y
	FROM reads GROUP BY ALL ORDER BY x, series" >"$work/windows.csv"
figure bars "$(picture threads)" --title "99th percentile of each thread" --x "window" --y "µs" <"$work/windows.csv"
csv threads "$by_thread SELECT \"window\", round(quantile_disc(dur_ns, 0.99) FILTER (series = 'T1') / 1000)::BIGINT AS T1,
	round(quantile_disc(dur_ns, 0.99) FILTER (series = 'T2') / 1000)::BIGINT AS T2, round(quantile_disc(dur_ns, 0.99) FILTER (series = 'T3') / 1000)::BIGINT AS T3,
	round(quantile_disc(dur_ns, 0.99) FILTER (series = 'T4') / 1000)::BIGINT AS T4, count(*) AS reads FROM reads GROUP BY 1 ORDER BY 1" | figure table

heading "Table 1: interrupts"
cat >"$work/paper.csv" <<'CSV'
thread,paper_interrupts,paper_interrupt_ns
T1,7276,47849914
T2,128,816828
T3,2953,19398496
T4,121,787582
CSV
csv threads "$by_thread SELECT series AS thread, count(rid) AS reads, coalesce(sum(n), 0)::BIGINT AS interrupts,
	coalesce(sum(irq_ns), 0)::BIGINT AS interrupt_ns
	FROM reads LEFT JOIN (SELECT rid, count(*) AS n, sum(dur_ns) AS irq_ns FROM irqs GROUP BY rid) USING (rid)
	GROUP BY series ORDER BY series" | figure beside "$work/paper.csv" thread | figure table
where_sessions_are
