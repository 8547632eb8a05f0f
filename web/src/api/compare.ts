// A comparison, as `fathom diff --format json` gives it.

import type { Client } from "./client";
import type { Diff } from "./comparison";

export type { Change, Diff as Comparison, Figure, Metric, Row as DiffRow, Verdict } from "./comparison";

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

export function compare(
	client: Client,
	before: readonly string[],
	after: readonly string[],
	signal: AbortSignal,
): Promise<Diff> {
	return client.json<Diff>(comparePath(before, after), signal);
}

export function comparePath(before: readonly string[], after: readonly string[]): string {
	return `/compare?${new URLSearchParams({ before: before.join(","), after: after.join(",") })}`;
}
