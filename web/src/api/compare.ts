// A comparison, as `fathom diff --format json` gives it.

import type { Client } from "./client";

export type Metric =
	| "calls"
	| "errors"
	| "asked_bytes"
	| "bytes"
	| "time"
	| "p50"
	| "p99"
	| "first_call"
	| "last_call"
	| "findings";

export type Verdict = "same" | "within_noise" | "worse" | "better" | "not_comparable";

export interface Figure {
	metric: Metric;
	/** Null when it was not measured. */
	before: number | null;
	after: number | null;
	/** As a share of what was before; null when that was 0. */
	change: number | null;
	verdict: Verdict;
	why: string;
}

export type Status = "both" | "new" | "gone";

export interface DiffRow {
	name: string;
	/** What goes with it: the file of an operation, the class of a call. */
	on?: string | null;
	/** How many names the pattern stands for, before and after. */
	names?: [number, number] | null;
	status: Status;
	figures: Figure[];
}

export interface Change {
	verdict: Verdict;
	metric: Metric;
	subject: string;
	table: string;
	before: number | null;
	after: number | null;
	change: number | null;
	/** Part of the whole that the difference is. */
	weight: number;
	why: string;
	fails: boolean;
}

export interface FindingChange {
	rule: string;
	subject: string;
	group: string;
	status: Status;
	severity: [string | null, string | null];
	lost_ns: [number | null, number | null];
	sessions: [number, number];
	title: string;
	verdict: Verdict;
	why: string;
}

export const TABLES = [
	["files", "Files"],
	["syscalls", "Syscalls"],
	["operations", "Calls on files"],
	["classes", "Classes"],
	["processes", "Processes"],
	["layers", "Layers"],
	["devices", "Devices"],
	["errors", "Errors"],
] as const;

export type TableName = (typeof TABLES)[number][0];

export interface Comparison {
	outcome: "worse" | "changed" | "within_noise";
	before: { sessions: { name: string; duration_ns: number; calls: number }[] };
	after: { sessions: { name: string; duration_ns: number; calls: number }[] };
	method: { text: string[]; per_second: boolean };
	notes: string[];
	changes: Change[];
	totals: Figure[];
	tables: Record<TableName, DiffRow[]>;
	findings: FindingChange[];
}

export function compare(
	client: Client,
	before: readonly string[],
	after: readonly string[],
	signal: AbortSignal,
): Promise<Comparison> {
	return client.json<Comparison>(comparePath(before, after), signal);
}

export function comparePath(before: readonly string[], after: readonly string[]): string {
	return `/compare?${new URLSearchParams({ before: before.join(","), after: after.join(",") })}`;
}
