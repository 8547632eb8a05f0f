// Two sessions on the same axes.

import type { Columns } from "../../api/arrow";
import { gridOf, type Heat, heatOf, perSecond, seriesOf, type TileColumns, throughCalls } from "../../lib/buckets";
import { quantile, type Span } from "../../lib/scale";

type Tiles = TileColumns & Pick<Columns, "rows">;

/** What is drawn of each bucket of time. */
export type OverTimeOf = "max" | "p99" | "calls" | "bytes";

export interface OverTime {
	span: Span;
	t: Float64Array;
	bucket: number;
	/** Before and after; NaN where that session has ended, or no call is in progress. */
	values: [Float64Array, Float64Array];
}

/** One figure of both from their first bucket on, in the buckets of the coarser one. */
export function overTime(before: Tiles, after: Tiles, of: OverTimeOf): OverTime {
	const grids = [gridOf(before), gridOf(after)] as const;
	const bucket = Math.max(grids[0].bucket, grids[1].bucket);
	const sides = [before, after].map((tiles, i) => {
		const grid = grids[i as 0 | 1];
		// Widths are powers of two: each of the coarser ones holds a whole number of the finer.
		const step = Math.max(1, Math.round(bucket / grid.bucket));
		const through = (line: Float64Array) => {
			if (tiles.has("busy_ns")) throughCalls(line, seriesOf(tiles, grid, "busy_ns"), step);
			return line;
		};
		if (of === "p99") return through(quantiles(heatOf(tiles, grid), grid.length, step));
		const values = seriesOf(tiles, grid, of === "max" ? "max_ns" : of, of === "max" ? "max" : "sum");
		const joined = new Float64Array(Math.ceil(grid.length / step));
		values.forEach((value, at) => {
			const to = Math.floor(at / step);
			const known = joined[to] ?? 0;
			joined[to] = of === "max" ? Math.max(known, value) : known + value;
		});
		if (of === "max") return through(joined.map((value) => (value > 0 ? value : Number.NaN)));
		return perSecond(joined, bucket);
	});
	const length = Math.max(1, ...sides.map((values) => values.length));
	const filled = (values: Float64Array | undefined) => {
		const made = new Float64Array(length).fill(Number.NaN);
		if (values) made.set(values);
		return made;
	};
	return {
		span: { from: 0, to: length * bucket },
		t: Float64Array.from({ length }, (_, i) => i * bucket),
		bucket,
		values: [filled(sides[0]), filled(sides[1])],
	};
}

/** The p99 of each `step` buckets together. */
function quantiles(heat: Heat, length: number, step: number): Float64Array {
	const made = new Float64Array(Math.ceil(length / step)).fill(Number.NaN);
	for (let i = 0; i < made.length; i += 1) {
		const sums = new Float64Array(heat.rows);
		for (let b = i * step; b < Math.min(length, (i + 1) * step); b += 1) {
			for (let row = 0; row < heat.rows; row += 1)
				sums[row] = (sums[row] ?? 0) + (heat.counts[b * heat.rows + row] ?? 0);
		}
		const p99 = quantile(sums, 0.99);
		if (p99 !== null) made[i] = p99 * 2 ** heat.low;
	}
	return made;
}

/** Shares are drawn as so many of a billion calls: a logarithmic axis has no values below 1. */
export const OF = 1e9;

export interface Survival {
	/** Powers of two of durations, the ends of the histogram's buckets. */
	t: Float64Array;
	/** Of a billion calls, those that took that long or longer; NaN for none. Before and after. */
	values: [Float64Array, Float64Array];
}

/** One minus the cumulative distribution of durations: which part of the calls took so long, or longer. */
export function survival(before: Tiles, after: Tiles): Survival {
	const heats = [heatOf(before, gridOf(before)), heatOf(after, gridOf(after))] as const;
	const used = heats.filter((heat) => heat.rows > 0);
	const low = used.length > 0 ? Math.min(...used.map((heat) => heat.low)) : 0;
	const high = used.length > 0 ? Math.max(...used.map((heat) => heat.low + heat.rows)) : 1;
	const values = heats.map((heat) => {
		const counts = new Float64Array(high - low + 1);
		let all = 0;
		heat.counts.forEach((n, i) => {
			const at = heat.low - low + (i % heat.rows);
			counts[at] = (counts[at] ?? 0) + n;
			all += n;
		});
		let left = all;
		return counts.map((n) => {
			const here = left;
			left -= n;
			return here > 0 ? (here / all) * OF : Number.NaN;
		});
	});
	return {
		t: Float64Array.from({ length: high - low + 1 }, (_, i) => low + i),
		values: [values[0] ?? new Float64Array(0), values[1] ?? new Float64Array(0)],
	};
}
