// Example queries: each answers a question that people have. Some of them are the default board of panels.

import { type PlotChoice, type SavedQuery, TABLE } from "./queries";

export interface Example {
	name: string;
	sql: string;
	plot: PlotChoice;
	/** It is on the board that everybody begins with. */
	board?: boolean;
	/** The view SQL begins with it: short, and useful to change. */
	first?: boolean;
}

const over = (form: PlotChoice["form"], more: Partial<PlotChoice> = {}): PlotChoice => ({ ...TABLE, form, ...more });

export const EXAMPLES: readonly Example[] = [
	{
		name: "Time in calls by system call",
		// A call counts in each bucket that it lasts into: a plot of its whole time where it begins has gaps where it hangs.
		sql: `WITH parts AS (
  SELECT syscall, greatest(ts_ns, $from) AS first_ns, least(ts_ns + dur_ns, $to) AS last_ns,
    unnest(range($from + (first_ns - $from) // $bucket * $bucket, last_ns, $bucket)) AS ts_ns
  FROM syscalls
  WHERE ts_ns < $to AND ts_ns + dur_ns > $from AND $filter
)
SELECT ts_ns, syscall,
  sum(least(last_ns, ts_ns + $bucket) - greatest(first_ns, ts_ns)) / $bucket AS in_progress
FROM parts
GROUP BY ALL ORDER BY ALL`,
		plot: over("stack"),
		board: true,
	},
	{
		name: "Slowest files",
		sql: `SELECT sum(dur_ns) AS time_ns, quantile_disc(dur_ns, 0.99) AS p99_ns,
  count(*) AS calls, path, max(dur_ns) AS max_ns, sum(bytes) AS bytes
FROM syscalls
WHERE ts_ns BETWEEN $from AND $to AND $filter AND path IS NOT NULL
GROUP BY ALL ORDER BY time_ns DESC LIMIT 100`,
		plot: over("table"),
		board: true,
	},
	{
		name: "Device requests by process",
		sql: `SELECT $from + (ts_ns - $from) // $bucket * $bucket AS ts_ns,
  coalesce(comm, 'not known') AS comm, sum(bytes) AS bytes
FROM block
WHERE ts_ns BETWEEN $from AND $to
GROUP BY ALL ORDER BY ALL`,
		plot: over("stack"),
		board: true,
	},
	{
		name: "Time by layer",
		sql: `SELECT layer, name, count(*) AS visits, sum(self_ns) AS time_ns
FROM slices
WHERE ts_ns BETWEEN $from AND $to AND rid IN (SELECT rid FROM syscalls WHERE $filter)
GROUP BY ALL ORDER BY time_ns DESC LIMIT 50`,
		plot: over("table"),
		board: true,
	},
	{
		name: "Slowest calls",
		sql: `SELECT rid, dur_ns, syscall, comm, path, bytes
FROM syscalls
WHERE ts_ns BETWEEN $from AND $to AND $filter
ORDER BY dur_ns DESC
LIMIT 100`,
		plot: over("table"),
		board: true,
		first: true,
	},
	{
		name: "Calls over time",
		sql: `SELECT $from + (ts_ns - $from) // $bucket * $bucket AS ts_ns,
  syscall, count(*) AS calls
FROM syscalls
WHERE ts_ns BETWEEN $from AND $to AND $filter
GROUP BY ALL ORDER BY ALL`,
		plot: over("stack"),
	},
	{
		name: "p99 over time by class",
		sql: `SELECT $from + (ts_ns - $from) // $bucket * $bucket AS ts_ns,
  class, quantile_disc(dur_ns, 0.99) AS p99_ns
FROM syscalls
WHERE ts_ns BETWEEN $from AND $to AND $filter
GROUP BY ALL ORDER BY ALL`,
		plot: over("line", { log: true }),
		board: true,
	},
	{
		name: "Small reads and writes by file",
		sql: `SELECT path, syscall, count(*) AS calls,
  sum(bytes) AS bytes, avg(bytes) AS mean_bytes
FROM syscalls
WHERE ts_ns BETWEEN $from AND $to AND $filter
  AND class = 'data' AND bytes BETWEEN 1 AND 4095
GROUP BY ALL ORDER BY calls DESC LIMIT 50`,
		plot: over("table"),
	},
	{
		name: "Sizes of reads and writes",
		sql: `SELECT size, syscall, count(*) AS calls
FROM syscalls
WHERE ts_ns BETWEEN $from AND $to AND $filter
  AND class = 'data' AND size > 0
GROUP BY ALL ORDER BY size`,
		plot: over("dots", { x: "size", y: ["calls"], series: "syscall" }),
	},
	{
		name: "Errors by file",
		sql: `SELECT errno, syscall, comm, path, count(*) AS calls
FROM syscalls
WHERE ts_ns BETWEEN $from AND $to AND $filter AND errno IS NOT NULL
GROUP BY ALL ORDER BY calls DESC LIMIT 100`,
		plot: over("table"),
	},
	{
		name: "Wall time of threads",
		sql: `SELECT comm, tid, state, reason, time_ns, round(100 * share, 1) AS percent
FROM thread_states
ORDER BY time_ns DESC LIMIT 50`,
		plot: over("table"),
	},
	{
		name: "Who held whom up",
		sql: `SELECT resource, victim_comm, victim_tid, culprit_comm, culprit_tid, time_ns
FROM blame
WHERE culprit_tid IS NOT NULL
ORDER BY time_ns DESC LIMIT 50`,
		plot: over("table"),
	},
	{
		name: "Waits and who ended them",
		sql: `SELECT comm, reason, waker, count(*) AS waits, sum(dur_ns) AS time_ns
FROM waits
WHERE ts_ns BETWEEN $from AND $to
GROUP BY ALL ORDER BY time_ns DESC LIMIT 50`,
		plot: over("table"),
	},
];

/** The panels that everybody begins with, until the reader has some. */
export const BOARD: readonly SavedQuery[] = EXAMPLES.filter((example) => example.board).map(
	({ name, sql, plot }, i) => ({ id: `board ${i}`, name, sql, plot, panel: true, wide: false }),
);
