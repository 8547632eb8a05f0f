// Two sessions on the same axes.

import type { Columns } from "../../api/arrow";
import { gridOf, heatOf, perSecond, seriesOf, type TileColumns } from "../../lib/buckets";
import type { Span } from "../../lib/scale";

type Tiles = TileColumns & Pick<Columns, "rows">;

export interface OverTime {
	span: Span;
	t: Float64Array;
	bucket: number;
	/** Calls per second, before and after; NaN where that session has ended. */
	calls: [Float64Array, Float64Array];
}

/** Calls per second of both from their first bucket on, in the buckets of the coarser one. */
export function overTime(before: Tiles, after: Tiles): OverTime {
	const grids = [gridOf(before), gridOf(after)] as const;
	const bucket = Math.max(grids[0].bucket, grids[1].bucket);
	const rates = [before, after].map((tiles, i) => {
		const grid = grids[i as 0 | 1];
		const calls = seriesOf(tiles, grid, "calls");
		// Widths are powers of two: each of the coarser ones holds a whole number of the finer.
		const step = Math.max(1, Math.round(bucket / grid.bucket));
		const sums = new Float64Array(Math.ceil(grid.length / step));
		calls.forEach((n, at) => {
			const to = Math.floor(at / step);
			sums[to] = (sums[to] ?? 0) + n;
		});
		return perSecond(sums, bucket);
	});
	const length = Math.max(1, ...rates.map((r) => r.length));
	const filled = (values: Float64Array | undefined) => {
		const made = new Float64Array(length).fill(Number.NaN);
		if (values) made.set(values);
		return made;
	};
	return {
		span: { from: 0, to: length * bucket },
		t: Float64Array.from({ length }, (_, i) => i * bucket),
		bucket,
		calls: [filled(rates[0]), filled(rates[1])],
	};
}

export interface Distribution {
	/** The power of two of the first place. */
	low: number;
	t: Float64Array;
	/** Shares of all calls, before and after. */
	shares: [Float64Array, Float64Array];
}

export function distribution(before: Tiles, after: Tiles): Distribution {
	const heats = [heatOf(before, gridOf(before)), heatOf(after, gridOf(after))] as const;
	const used = heats.filter((heat) => heat.rows > 0);
	if (used.length === 0) {
		return { low: 0, t: new Float64Array(1), shares: [new Float64Array(1), new Float64Array(1)] };
	}
	const low = Math.min(...used.map((heat) => heat.low));
	const high = Math.max(...used.map((heat) => heat.low + heat.rows));
	const shares = heats.map((heat) => {
		const made = new Float64Array(high - low);
		let all = 0;
		heat.counts.forEach((n, i) => {
			const at = heat.low - low + (i % heat.rows);
			made[at] = (made[at] ?? 0) + n;
			all += n;
		});
		return all > 0 ? made.map((n) => n / all) : made;
	});
	return {
		low,
		t: Float64Array.from({ length: high - low }, (_, i) => low + i),
		shares: [shares[0] ?? new Float64Array(0), shares[1] ?? new Float64Array(0)],
	};
}
