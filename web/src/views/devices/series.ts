// What is drawn of a device and of the page cache.

import type { Columns } from "../../api/arrow";
import { Lists } from "../../api/ipc";
import { type Grid, type Heat, type Keyed, places, seriesByKey, type TileColumns } from "../../lib/buckets";
import { percent, visible } from "../../lib/format";
import { quantile } from "../../lib/scale";

export type Measure = "both" | "device" | "queue" | "requests" | "bytes";

/** Series on each other: those in the device, on these those that wait for it, and the sum of the first as the border. */
export interface Stacked {
	device: Keyed[];
	queue: Keyed[];
	border: Float64Array;
}

/** Those in a device and those that wait for it, of the same names, those with the most of both first. */
export function stacked(answer: TileColumns, grid: Grid, most: number): Stacked {
	const device = byUser(answer, grid, "device", 1, Number.POSITIVE_INFINITY);
	const queue = byUser(answer, grid, "queue", 1, Number.POSITIVE_INFINITY);
	const totals = new Map<string | null, number>();
	for (const s of [...device, ...queue]) totals.set(s.key, (totals.get(s.key) ?? 0) + s.total);
	const named = [...totals].sort((a, b) => b[1] - a[1]).slice(0, most);
	const order = new Map(named.map(([key], i) => [key, i]));
	const border = new Float64Array(grid.length);
	for (const s of device) add(border, s.values);
	return { device: inOrder(device, order, grid), queue: inOrder(queue, order, grid), border };
}

function inOrder(all: readonly Keyed[], order: ReadonlyMap<string | null, number>, grid: Grid): Keyed[] {
	const named = all.filter((s) => order.has(s.key) && s.total > 0);
	named.sort((a, b) => (order.get(a.key) ?? 0) - (order.get(b.key) ?? 0));
	const others: Keyed = { key: null, label: "all others", values: new Float64Array(grid.length), total: 0 };
	for (const s of all) {
		if (order.has(s.key)) continue;
		add(others.values, s.values);
		others.total += s.total;
	}
	return others.total > 0 ? [...named, others] : named;
}

function add(to: Float64Array, values: Float64Array): void {
	values.forEach((v, i) => {
		to[i] = (to[i] ?? 0) + v;
	});
}

/** A column by who submitted the requests, the most first; beyond `most` names all others as one. */
export function byUser(answer: TileColumns, grid: Grid, column: string, factor: number, most: number): Keyed[] {
	const all = seriesByKey(answer, grid, column);
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

/** Who had how much of it all, the most first: `fio 72 %, kworker/u8:6 21 %`. */
export function sharesText(all: readonly Pick<Keyed, "key" | "label" | "total">[], most: number): string {
	const totals = new Map<string, number>();
	let whole = 0;
	for (const { key, label, total } of all) {
		const name = key === "" ? "not known" : visible(label);
		totals.set(name, (totals.get(name) ?? 0) + total);
		whole += total;
	}
	if (whole <= 0) return "";
	const named = [...totals].sort((a, b) => b[1] - a[1]).slice(0, most);
	return named
		.filter(([, total]) => total >= whole * 0.01)
		.map(([name, total]) => `${name} ${percent(total / whole)}`)
		.join(", ");
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

/** Histograms without their lowest power, which holds what has no duration. */
export function withoutUnseen(answer: TileColumns): TileColumns {
	return {
		rows: answer.rows,
		f64: (name) => answer.f64(name),
		texts: (name) => answer.texts(name),
		flags: (name) => answer.flags(name),
		has: (name) => answer.has(name),
		metaNumber: (name) => answer.metaNumber(name),
		lists: (name) => {
			const { values, ends } = answer.lists(name);
			const seen = values.slice();
			for (let i = 0; i + 1 < ends.length; i += 1) if ((ends[i] ?? 0) < (ends[i + 1] ?? 0)) seen[ends[i] ?? 0] = 0;
			return new Lists(seen, ends);
		},
	};
}
