// Where a click on a plot over time, or on a row of sums, leads: to the calls behind it.

import type { Filter } from "../api/types";
import type { Grid } from "../lib/buckets";
import { mergeFilters } from "../lib/filters";
import type { Span } from "../lib/scale";
import { archive } from "../state/server";
import { store } from "../state/store";
import type { Pointed } from "./plotframe";

/** What a click on a plot leads to, with a word on it beside the pointer. A saved page has no other windows. */
export function onward(leads: string, onPick: (at: Pointed) => void) {
	return archive === null ? { leads, onPick } : {};
}

/** Calls that began in a part of the time, the slowest first. */
export function showCalls({ from, to }: Span, filter: Filter = {}): void {
	store.go({
		view: "table",
		window: { kind: "range", from, to },
		filter: mergeFilters(store.get().filter, filter),
		params: { sort: "-dur_ns" },
		rid: null,
	});
}

/** What was in progress in a part of the time: calls that began before it are no rows of its table. */
export function showProgress({ from, to }: Span, filter: Filter = {}): void {
	store.go({
		view: "timeline",
		window: { kind: "range", from, to },
		filter: mergeFilters(store.get().filter, filter),
		rid: null,
	});
}

/** The time of a bucket; null beside all of them. */
export function bucketOf({ t, bucket }: Pick<Grid, "t" | "bucket">, index: number): Span | null {
	const from = t[index];
	return from === undefined ? null : { from, to: from + bucket };
}

/** The place of the stack below the pointer, of stacks in their order from the bottom up; -1 above them all. */
export function stackAt(stacks: readonly ArrayLike<number>[], at: Pick<Pointed, "index" | "value">): number {
	let sum = 0;
	return stacks.findIndex((values) => {
		const value = values[at.index] || 0;
		sum += value;
		return value > 0 && at.value < sum;
	});
}
