// Time by layer: over windows, and for each request in order.

import type { Columns } from "../../api/arrow";
import { type Grid, type Keyed, seriesByKey, type TileColumns } from "../../lib/buckets";
import { byLayer } from "../../lib/layers";

/** Series of layers over windows, in the order in which they are stacked. */
export function windowsOf(answer: TileColumns, grid: Grid): Keyed[] {
	const named: TileColumns = {
		rows: answer.rows,
		f64: (name) => answer.f64(name),
		texts: (name) => answer.texts(name === "key" || name === "label" ? "layer" : name),
		flags: (name) => answer.flags(name),
		lists: (name) => answer.lists(name),
		has: (name) => name === "key" || (name !== "label" && answer.has(name)),
		metaNumber: (name) => answer.metaNumber(name),
	};
	return seriesByKey(named, grid, "self_ns").sort((a, b) => byLayer(a.label, b.label));
}

/** Shares of each bucket's sum instead of sums. */
export function shares(series: readonly Keyed[]): Keyed[] {
	const length = series[0]?.values.length ?? 0;
	const sums = new Float64Array(length);
	for (const s of series) for (let i = 0; i < length; i += 1) sums[i] = (sums[i] ?? 0) + (s.values[i] ?? 0);
	return series.map((s) => ({
		...s,
		values: s.values.map((v, i) => ((sums[i] ?? 0) > 0 ? v / (sums[i] ?? 1) : 0)),
	}));
}

export interface Requests {
	length: number;
	rid: Float64Array;
	t: Float64Array;
	dur: Float64Array;
	layers: { layer: string; self: Float64Array }[];
}

type RequestColumns = Pick<Columns, "rows" | "f64" | "texts">;

/** Rows of (request, layer) as a column a request, in the order of time. */
export function requestsOf(answer: RequestColumns): Requests {
	const rids = answer.f64("rid");
	const times = answer.f64("t");
	const durations = answer.f64("dur");
	const selves = answer.f64("self_ns");
	const names = answer.texts("layer");
	const first = new Map<number, number>();
	for (let i = 0; i < answer.rows; i += 1) {
		const rid = rids[i] ?? Number.NaN;
		if (!first.has(rid)) first.set(rid, i);
	}
	const order = [...first.entries()].sort((a, b) => (times[a[1]] ?? 0) - (times[b[1]] ?? 0) || a[0] - b[0]);
	const place = new Map(order.map(([rid], i) => [rid, i]));
	const length = order.length;
	const layers = new Map<string, Float64Array>();
	for (let i = 0; i < answer.rows; i += 1) {
		const at = place.get(rids[i] ?? Number.NaN);
		const layer = names[i];
		if (at === undefined || layer === null || layer === undefined) continue;
		let self = layers.get(layer);
		if (!self) {
			self = new Float64Array(length);
			layers.set(layer, self);
		}
		self[at] = (self[at] ?? 0) + (selves[i] || 0);
	}
	return {
		length,
		rid: Float64Array.from(order, ([rid]) => rid),
		t: Float64Array.from(order, ([, i]) => times[i] ?? 0),
		dur: Float64Array.from(order, ([, i]) => durations[i] ?? 0),
		layers: [...layers.entries()].sort((a, b) => byLayer(a[0], b[0])).map(([layer, self]) => ({ layer, self })),
	};
}

/** The same with the longest first. */
export function slowestFirst(requests: Requests): Requests {
	const order = Array.from({ length: requests.length }, (_, i) => i).sort(
		(a, b) => (requests.dur[b] ?? 0) - (requests.dur[a] ?? 0) || a - b,
	);
	const taken = (values: Float64Array) => Float64Array.from(order, (i) => values[i] ?? 0);
	return {
		length: requests.length,
		rid: taken(requests.rid),
		t: taken(requests.t),
		dur: taken(requests.dur),
		layers: requests.layers.map(({ layer, self }) => ({ layer, self: taken(self) })),
	};
}

/** The duration that all but one in a hundred are below; 0 without any. */
export function p99Of(values: Float64Array): number {
	if (values.length === 0) return 0;
	const sorted = Float64Array.from(values).sort();
	return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))] ?? 0;
}

/** Which layer had most of the time of a request; null without layers. */
export function largestLayer(requests: Requests, at: number): string | null {
	let best: string | null = null;
	let most = 0;
	for (const { layer, self } of requests.layers) {
		if ((self[at] ?? 0) > most) {
			most = self[at] ?? 0;
			best = layer;
		}
	}
	return best;
}
