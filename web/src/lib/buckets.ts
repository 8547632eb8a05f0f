// Tiles, which come as rows of (bucket, key), as even grids that plots can draw.

import type { Columns } from "../api/arrow";

/** Even buckets of time. */
export interface Grid {
	/** Begin of each bucket. */
	t: Float64Array;
	bucket: number;
	length: number;
}

/** What a grid needs of an answer. */
export type TileColumns = Pick<Columns, "rows" | "f64" | "texts" | "flags" | "lists" | "has" | "metaNumber">;

/** The buckets of an answer; those without calls are in it too. */
export function gridOf(tiles: TileColumns): Grid {
	const bucket = tiles.metaNumber("bucket_ns") ?? 1;
	const times = tiles.f64("t");
	let from = tiles.metaNumber("from") ?? Number.POSITIVE_INFINITY;
	let to = tiles.metaNumber("to") ?? Number.NEGATIVE_INFINITY;
	for (const t of times) {
		if (t < from) from = t;
		if (t + bucket > to) to = t + bucket;
	}
	if (!(to > from)) return { t: new Float64Array(0), bucket, length: 0 };
	// Buckets are aligned to the first row that there is, else to the window.
	const anchor = times.length > 0 ? (times[0] ?? from) : from;
	const first = anchor - Math.ceil((anchor - from) / bucket - 1e-9) * bucket;
	const length = Math.min(Math.ceil((to - first) / bucket - 1e-9), 1 << 16);
	const t = new Float64Array(length);
	for (let i = 0; i < length; i += 1) t[i] = first + i * bucket;
	return { t, bucket, length };
}

/** The bucket of each row in a grid; -1 for one outside. */
export function places(tiles: TileColumns, grid: Grid): Int32Array {
	const times = tiles.f64("t");
	const first = grid.t[0] ?? 0;
	const made = new Int32Array(tiles.rows);
	for (let i = 0; i < tiles.rows; i += 1) {
		const place = Math.round(((times[i] ?? 0) - first) / grid.bucket);
		made[i] = place >= 0 && place < grid.length ? place : -1;
	}
	return made;
}

export interface Keyed {
	/** Null for what is left: all keys that have no series of their own. */
	key: string | null;
	label: string;
	values: Float64Array;
	total: number;
}

/** One column as a series a key, the largest first and what is left last. */
export function seriesByKey(tiles: TileColumns, grid: Grid, column: string): Keyed[] {
	const keys = tiles.has("key") ? tiles.texts("key") : [];
	const labels = tiles.has("label") ? tiles.texts("label") : [];
	const left = tiles.has("rest") ? tiles.flags("rest") : [];
	const values = tiles.f64(column);
	const at = places(tiles, grid);
	const found = new Map<string, Keyed>();
	for (let i = 0; i < tiles.rows; i += 1) {
		const place = at[i] ?? -1;
		if (place < 0) continue;
		const key = left[i] ? null : (keys[i] ?? "");
		const name = key === null ? "rest" : `key ${key}`;
		let series = found.get(name);
		if (!series) {
			const label = key === null ? "all others" : labels[i] || key || "none";
			series = { key, label, values: new Float64Array(grid.length), total: 0 };
			found.set(name, series);
		}
		const value = values[i] ?? 0;
		if (!Number.isFinite(value)) continue;
		series.values[place] = (series.values[place] ?? 0) + value;
		series.total += value;
	}
	return [...found.values()].sort((a, b) => Number(a.key === null) - Number(b.key === null) || b.total - a.total);
}

/** One column summed over keys. */
export function seriesOf(tiles: TileColumns, grid: Grid, column: string, join: "sum" | "max" = "sum"): Float64Array {
	const values = tiles.f64(column);
	const at = places(tiles, grid);
	const made = new Float64Array(grid.length);
	for (let i = 0; i < tiles.rows; i += 1) {
		const place = at[i] ?? -1;
		const value = values[i] ?? 0;
		if (place < 0 || !Number.isFinite(value)) continue;
		const before = made[place] ?? 0;
		made[place] = join === "sum" ? before + value : Math.max(before, value);
	}
	return made;
}

/** Counts by bucket of time and power of two of the duration. */
export interface Heat {
	/** `rows` counts for each bucket of time, lowest power first. */
	counts: Float64Array;
	/** The power of two of the first row. */
	low: number;
	rows: number;
	max: number;
}

export function heatOf(tiles: TileColumns, grid: Grid, column = "latency"): Heat {
	const { values, ends, length } = tiles.lists(column);
	const at = places(tiles, grid);
	let low = Number.POSITIVE_INFINITY;
	let high = -1;
	for (let i = 0; i < length; i += 1) {
		const first = ends[i] ?? 0;
		let from = first;
		let to = (ends[i + 1] ?? 0) - 1;
		// What lies between the highest and the lowest so far changes neither.
		while (to > first + high && !((values[to] ?? 0) > 0)) to -= 1;
		if (to - first > high) high = to - first;
		while (from <= to && from < first + low && !((values[from] ?? 0) > 0)) from += 1;
		if (from <= to && from - first < low) low = from - first;
	}
	if (high < 0) return { counts: new Float64Array(0), low: 0, rows: 0, max: 0 };
	const rows = high - low + 1;
	const counts = new Float64Array(rows * grid.length);
	let max = 0;
	for (let i = 0; i < length; i += 1) {
		const place = at[i] ?? -1;
		if (place < 0) continue;
		const first = ends[i] ?? 0;
		const end = ends[i + 1] ?? 0;
		// Zeros at the end of a list are not sent.
		for (let j = first + low; j < end; j += 1) {
			const added = values[j] ?? 0;
			if (added === 0) continue;
			const index = place * rows + j - first - low;
			const value = (counts[index] ?? 0) + added;
			counts[index] = value;
			if (value > max) max = value;
		}
	}
	return { counts, low, rows, max };
}

/**
 * Lengthens a line through buckets where no call begins but one that began before is still in progress. `busy` is the time
 * in calls in buckets of which `step` are one of the line's.
 */
export function throughCalls(line: Float64Array, busy: Float64Array, step: number): void {
	for (let i = 1; i < line.length; i += 1) {
		if (!Number.isNaN(line[i])) continue;
		let inProgress = 0;
		for (let j = i * step; j < (i + 1) * step; j += 1) inProgress += busy[j] ?? 0;
		if (inProgress > 0) line[i] = line[i - 1] ?? Number.NaN;
	}
}

/** Values per second of buckets that are `bucket` nanoseconds wide. */
export function perSecond(values: Float64Array, bucket: number): Float64Array {
	const factor = 1e9 / bucket;
	return values.map((v) => v * factor);
}
