// Latencies of calls by what they do, and by where the time is rather than by where the calls are.

import type { Purpose } from "../api/calls";
import type { Heat, TileColumns } from "./buckets";
import { quantile } from "./scale";

export const PURPOSES: readonly Purpose[] = ["read", "write", "sync", "metadata", "other"];

/** Calls of one purpose. Percentiles are within a power of two, and null without calls. */
export interface Latency {
	purpose: Purpose;
	calls: number;
	time: number;
	p50: number | null;
	p99: number | null;
	max: number;
	/** Half of the time is in calls that took longer. */
	halfTime: number | null;
}

/** The middle of a power of two on the logarithmic scale. */
function middle(power: number): number {
	return 2 ** (power + 0.5);
}

/** Tiles by purpose with histograms, most time first. */
export function latencyOf(tiles: TileColumns): Latency[] {
	const keys = tiles.texts("key");
	const calls = tiles.f64("calls");
	const time = tiles.f64("time_ns");
	const max = tiles.f64("max_ns");
	const lists = tiles.lists("latency");
	const found: Latency[] = [];
	for (const purpose of PURPOSES) {
		const sum: Latency = { purpose, calls: 0, time: 0, p50: null, p99: null, max: 0, halfTime: null };
		const histogram: number[] = [];
		for (let i = 0; i < tiles.rows; i += 1) {
			if (keys[i] !== purpose) continue;
			sum.calls += calls[i] || 0;
			sum.time += time[i] || 0;
			sum.max = Math.max(sum.max, max[i] || 0);
			(lists[i] ?? []).forEach((n, power) => {
				histogram[power] = (histogram[power] ?? 0) + n;
			});
		}
		if (sum.calls === 0) continue;
		const filled = Array.from(histogram, (n) => n ?? 0);
		// No call took longer than the longest.
		const below = (ns: number | null) => (ns === null ? null : Math.min(ns, sum.max));
		sum.p50 = below(quantile(filled, 0.5));
		sum.p99 = below(quantile(filled, 0.99));
		sum.halfTime = below(
			quantile(
				filled.map((n, power) => n * middle(power)),
				0.5,
			),
		);
		found.push(sum);
	}
	return found.sort((a, b) => b.time - a.time);
}

/** Nanoseconds in each cell of a heat map instead of calls. */
export function weighted({ counts, low, rows }: Heat): Float64Array {
	return counts.map((n, i) => n * middle(low + (rows > 0 ? i % rows : 0)));
}
