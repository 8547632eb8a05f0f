// What is drawn of a device and of the page cache.

import type { Columns } from "../../api/arrow";
import { type Grid, type Heat, type Keyed, places, seriesByKey, type TileColumns } from "../../lib/buckets";
import { quantile } from "../../lib/scale";

export type Measure = "device" | "queue" | "requests" | "bytes";

const COLUMN: Readonly<Record<Measure, string>> = {
	device: "device_ns",
	queue: "queue_ns",
	requests: "requests",
	bytes: "bytes",
};

/** Who submitted requests, the most first; beyond `most` names all others as one. */
export function byUser(answer: TileColumns, grid: Grid, measure: Measure, most: number): Keyed[] {
	const all = seriesByKey(answer, grid, COLUMN[measure]);
	// Sums of times over the width of a bucket are how many there were at once.
	const factor = measure === "device" || measure === "queue" ? 1 / grid.bucket : 1e9 / grid.bucket;
	for (const s of all) s.values = s.values.map((v) => v * factor);
	if (all.length <= most) return all;
	const values = new Float64Array(grid.length);
	let total = 0;
	for (const s of all.slice(most)) {
		total += s.total;
		s.values.forEach((v, i) => {
			values[i] = (values[i] ?? 0) + v;
		});
	}
	return [...all.slice(0, most), { key: null, label: "all others", values, total }];
}

/** A quantile of each bucket's histogram; NaN for a bucket without any. */
export function quantileLine(heat: Heat, length: number, share: number): Float64Array {
	const values = new Float64Array(length).fill(Number.NaN);
	for (let i = 0; i < length; i += 1) {
		const q = quantile(heat.counts.subarray(i * heat.rows, (i + 1) * heat.rows), share);
		if (q !== null) values[i] = q * 2 ** heat.low;
	}
	return values;
}

/** A column at its buckets; NaN where there is no row. */
export function sampled(answer: Pick<Columns, "rows" | "f64"> & TileColumns, grid: Grid, column: string): Float64Array {
	const values = answer.f64(column);
	const at = places(answer, grid);
	const made = new Float64Array(grid.length).fill(Number.NaN);
	for (let i = 0; i < answer.rows; i += 1) {
		const place = at[i] ?? -1;
		if (place >= 0) made[place] = values[i] ?? Number.NaN;
	}
	return made;
}

/** Part of a whole for each bucket; NaN where the whole is nothing. */
export function ratio(part: Float64Array, whole: Float64Array): Float64Array {
	return part.map((v, i) => ((whole[i] ?? 0) > 0 ? v / (whole[i] ?? 1) : Number.NaN));
}

export function sum(values: Float64Array): number {
	let all = 0;
	for (const v of values) if (Number.isFinite(v)) all += v;
	return all;
}
