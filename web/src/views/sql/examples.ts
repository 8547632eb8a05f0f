// Statements to begin with: each answers a question that people have.

import type { PlotChoice } from "../../state/queries";
import { TABLE } from "../../state/queries";

export interface Example {
	name: string;
	sql: string;
	plot: PlotChoice;
}

const over = (form: PlotChoice["form"], more: Partial<PlotChoice> = {}): PlotChoice => ({ ...TABLE, form, ...more });

export const EXAMPLES: readonly Example[] = [
	{
		name: "The slowest calls",
		sql: `SELECT rid, dur_ns, syscall, comm, path, bytes
FROM syscalls
WHERE ts_ns BETWEEN $from AND $to AND $filter
ORDER BY dur_ns DESC
LIMIT 100`,
		plot: over("table"),
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
		name: "Errors",
		sql: `SELECT errno, syscall, comm, path, count(*) AS calls
FROM syscalls
WHERE ts_ns BETWEEN $from AND $to AND $filter AND errno IS NOT NULL
GROUP BY ALL ORDER BY calls DESC LIMIT 100`,
		plot: over("table"),
	},
	{
		name: "Who woke whom",
		sql: `SELECT comm, reason, waker, count(*) AS waits, sum(dur_ns) AS time_ns
FROM waits
WHERE ts_ns BETWEEN $from AND $to
GROUP BY ALL ORDER BY time_ns DESC LIMIT 50`,
		plot: over("table"),
	},
];
