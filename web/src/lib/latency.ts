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

/** What was worked out before, as several parts of a view show it. */
const known = new WeakMap<TileColumns, readonly Latency[]>();

/** Tiles by purpose with histograms, most time first. */
export function latencyOf(tiles: TileColumns): readonly Latency[] {
	const made = known.get(tiles) ?? addedUp(tiles);
	known.set(tiles, made);
	return made;
}

function addedUp(tiles: TileColumns): Latency[] {
	const keys = tiles.texts("key");
	const calls = tiles.f64("calls");
	const time = tiles.f64("time_ns");
	const max = tiles.f64("max_ns");
	const { values, ends } = tiles.lists("latency");
	const sums = new Map<string | null, { sum: Latency; histogram: number[] }>();
	for (const purpose of PURPOSES) {
		const sum: Latency = { purpose, calls: 0, time: 0, p50: null, p99: null, max: 0, halfTime: null };
		sums.set(purpose, { sum, histogram: [] });
	}
	for (let i = 0; i < tiles.rows; i += 1) {
		const of = sums.get(keys[i] ?? null);
		if (!of) continue;
		of.sum.calls += calls[i] || 0;
		of.sum.time += time[i] || 0;
		of.sum.max = Math.max(of.sum.max, max[i] || 0);
		const first = ends[i] ?? 0;
		for (let j = first; j < (ends[i + 1] ?? 0); j += 1) {
			const power = j - first;
			of.histogram[power] = (of.histogram[power] ?? 0) + (values[j] ?? 0);
		}
	}
	const found: Latency[] = [];
	for (const { sum, histogram } of sums.values()) {
		if (sum.calls === 0) continue;
		// No call took longer than the longest.
		const below = (ns: number | null) => (ns === null ? null : Math.min(ns, sum.max));
		sum.p50 = below(quantile(histogram, 0.5));
		sum.p99 = below(quantile(histogram, 0.99));
		sum.halfTime = below(
			quantile(
				histogram.map((n, power) => n * middle(power)),
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
