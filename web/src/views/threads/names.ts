// Tiles of single threads summed up by the name that threads have in common.

import type { Columns } from "../../api/arrow";
import { type Grid, places, seriesOf, throughCalls } from "../../lib/buckets";
import { quantile } from "../../lib/scale";

export interface Named {
	/** Null for all threads beyond those that the answer tells apart. */
	name: string | null;
	/** How many threads have it. */
	threads: number;
	tids: number[];
	calls: Float64Array;
	/** Time in calls in each bucket, nanoseconds. */
	busy: Float64Array;
	total: number;
	time: number;
	errors: number;
	/**
	 * 99th percentile in each (coarser) bucket, within a power of two. Where no call begins but one is in progress it
	 * is that of the bucket where the last ones began; NaN without calls.
	 */
	p99: Float64Array;
	/** Over the whole window. */
	p99All: number;
}

type ThreadColumns = Pick<Columns, "rows" | "f64" | "texts" | "flags" | "lists" | "has" | "metaNumber">;

interface Sums extends Named {
	tidSet: Set<number>;
	/** A histogram of the latencies in each bucket. */
	histograms: (Float64Array | undefined)[];
	whole: Float64Array;
}

/** Powers of two that a histogram has. */
const POWERS = 64;

/** Buckets of which several are one, for percentiles: those of few calls say little. */
export function coarser(grid: Grid, most: number): { grid: Grid; step: number } {
	const step = Math.max(1, Math.ceil(grid.length / most));
	const length = Math.ceil(grid.length / step);
	return {
		step,
		grid: { t: Float64Array.from({ length }, (_, i) => grid.t[i * step] ?? 0), bucket: grid.bucket * step, length },
	};
}

/** What threads of each name did in each bucket, most time first and what is left last; percentiles of `step` at once. */
export function byName(tiles: ThreadColumns, grid: Grid, step = 1): Named[] {
	const keys = tiles.texts("key");
	const labels = tiles.texts("label");
	const left = tiles.flags("rest");
	const calls = tiles.f64("calls");
	const errors = tiles.f64("errors");
	const spent = tiles.f64("time_ns");
	const busy = tiles.has("busy_ns") ? tiles.f64("busy_ns") : spent;
	const lists = tiles.lists("latency");
	const at = places(tiles, grid);
	const found = new Map<string | null, Sums>();
	for (let i = 0; i < tiles.rows; i += 1) {
		const place = at[i] ?? -1;
		if (place < 0) continue;
		const name = left[i] ? null : (labels[i] ?? (keys[i] ? `thread ${keys[i]}` : "unknown"));
		let sums = found.get(name);
		if (!sums) {
			sums = {
				name,
				threads: 0,
				tids: [],
				tidSet: new Set(),
				calls: new Float64Array(grid.length),
				busy: new Float64Array(grid.length),
				total: 0,
				time: 0,
				errors: 0,
				p99: new Float64Array(Math.ceil(grid.length / step)).fill(Number.NaN),
				p99All: Number.NaN,
				histograms: new Array(Math.ceil(grid.length / step)),
				whole: new Float64Array(POWERS),
			};
			found.set(name, sums);
		}
		const tid = Number(keys[i]);
		if (name !== null && keys[i] !== null && Number.isFinite(tid)) sums.tidSet.add(tid);
		sums.calls[place] = (sums.calls[place] ?? 0) + (calls[i] || 0);
		sums.busy[place] = (sums.busy[place] ?? 0) + (busy[i] || 0);
		sums.total += calls[i] || 0;
		sums.time += busy[i] || 0;
		sums.errors += errors[i] || 0;
		if (!(calls[i] ?? 0)) continue;
		const list = lists.row(i);
		const group = Math.floor(place / step);
		sums.histograms[group] ??= new Float64Array(POWERS);
		add(sums.histograms[group], list);
		add(sums.whole, list);
	}
	for (const sums of found.values()) {
		sums.tids = [...sums.tidSet].sort((a, b) => a - b);
		sums.threads = sums.tids.length;
		sums.p99All = quantile(sums.whole, 0.99) ?? Number.NaN;
		sums.histograms.forEach((histogram, i) => {
			if (histogram) sums.p99[i] = quantile(histogram, 0.99) ?? Number.NaN;
		});
		throughCalls(sums.p99, sums.busy, step);
	}
	return [...found.values()].sort((a, b) => Number(a.name === null) - Number(b.name === null) || b.time - a.time);
}

/** The 99th percentile of all calls of a bucket, whoever made them. */
export function p99OfAll(tiles: ThreadColumns, grid: Grid, step = 1): Float64Array {
	const lists = tiles.lists("latency");
	const at = places(tiles, grid);
	const sums: (Float64Array | undefined)[] = new Array(Math.ceil(grid.length / step));
	for (let i = 0; i < tiles.rows; i += 1) {
		const place = Math.floor((at[i] ?? -1) / step);
		if (place < 0) continue;
		sums[place] ??= new Float64Array(POWERS);
		add(sums[place], lists.row(i));
	}
	const line = Float64Array.from(sums, (histogram) =>
		histogram ? (quantile(histogram, 0.99) ?? Number.NaN) : Number.NaN,
	);
	if (tiles.has("busy_ns")) throughCalls(line, seriesOf(tiles, grid, "busy_ns"), step);
	return line;
}

function add(to: Float64Array | undefined, list: Float64Array): void {
	if (!to) return;
	for (let i = 0; i < list.length && i < POWERS; i += 1) to[i] = (to[i] ?? 0) + (list[i] ?? 0);
}

/** All beyond the first so many names as one more of the rest. */
export function fold(names: readonly Named[], most: number): Named[] {
	const own = names.filter((n) => n.name !== null);
	if (own.length <= most) return [...names];
	const others = [...own.slice(most), ...names.filter((n) => n.name === null)];
	const added = (of: (n: Named) => Float64Array) => {
		const all = new Float64Array(own[0]?.calls.length ?? 0);
		for (const other of others)
			of(other).forEach((n, i) => {
				all[i] = (all[i] ?? 0) + n;
			});
		return all;
	};
	const sum = (of: (n: Named) => number) => others.reduce((all, n) => all + of(n), 0);
	const rest: Named = {
		name: null,
		threads: sum((n) => n.threads),
		tids: [],
		calls: added((n) => n.calls),
		busy: added((n) => n.busy),
		total: sum((n) => n.total),
		time: sum((n) => n.time),
		errors: sum((n) => n.errors),
		p99: new Float64Array(own[0]?.p99.length ?? 0).fill(Number.NaN),
		p99All: Number.NaN,
	};
	return [...own.slice(0, most), rest];
}
