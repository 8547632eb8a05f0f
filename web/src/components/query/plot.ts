// A result as a plot: what stands on which axis, and its rows as series.

import type { Columns } from "../../api/arrow";
import type { Span } from "../../lib/scale";
import type { PlotChoice } from "../../state/queries";

export type AxisKind = "time" | "number" | "category";

export type ResultColumns = Pick<Columns, "rows" | "names" | "f64" | "texts" | "type">;

export function isNumeric(data: Pick<Columns, "type">, name: string): boolean {
	return /^(Float|Int|Uint|Decimal)/.test(data.type(name));
}

/** A column of points in time on the clock of the tables. */
export function isTime(name: string): boolean {
	return /(^|_)(ts|at|start|end|begin)_ns$|^(ts|t)$/.test(name);
}

/** What a column's values are, as its name tells. */
export function unitOf(name: string): "duration" | "bytes" | "share" | "number" {
	if (/(^|_)ns$/.test(name)) return "duration";
	if (/(^|_)(bytes|size|offset)$|^bytes(_|$)/.test(name)) return "bytes";
	if (/(^|_)(share|ratio|percent)$/.test(name)) return "share";
	return "number";
}

/** The choice with every gap filled by what fits; null when there is nothing to draw. */
export function resolved(data: ResultColumns, choice: PlotChoice): PlotChoice | null {
	const numeric = data.names.filter((name) => isNumeric(data, name));
	const has = (name: string) => name !== "" && data.names.includes(name);
	const times = numeric.filter(isTime);
	const texts = data.names.filter((name) => !numeric.includes(name));
	// Points show how two numbers go together; everything else is about something.
	const usualX = times[0] ?? (choice.form === "dots" && numeric.length > 1 ? numeric[0] : (texts[0] ?? numeric[0]));
	const x = has(choice.x) ? choice.x : usualX;
	if (x === undefined) return null;
	const possible = numeric.filter((name) => name !== x);
	const chosen = choice.y.filter((name) => possible.includes(name));
	const usual = possible.filter((name) => !isTime(name));
	const y = chosen.length > 0 ? chosen : usual.slice(0, 1);
	if (y.length === 0) return null;
	// Rows of a text beside the axis are told apart by it, unless there is one column a line already.
	const series =
		choice.series === "none" ? "" : has(choice.series) && choice.series !== x ? choice.series : guess(texts, x, y);
	return { ...choice, x, y, series };
}

function guess(texts: readonly string[], x: string, y: readonly string[]): string {
	if (y.length > 1) return "";
	return texts.find((name) => name !== x) ?? "";
}

export interface PlotData {
	kind: AxisKind;
	/** Positions in order: since the session's start, values, or places of categories. */
	at: Float64Array;
	/** Names of categories. */
	names: string[];
	span: Span;
	/** Even distance of positions; null when they are uneven. */
	step: number | null;
	series: { key: string | null; label: string; values: Float64Array }[];
	/** Values that fell onto others of the same series and position, and were added to them. */
	joined: number;
}

/** Series with a color of their own; the others are one more. */
const MOST = 12;

export function plotOf(data: ResultColumns, choice: PlotChoice, start: number): PlotData {
	const kind: AxisKind = !isNumeric(data, choice.x) ? "category" : isTime(choice.x) ? "time" : "number";
	const names: string[] = [];
	const raw = new Float64Array(data.rows);
	if (kind === "category") {
		const known = new Map<string, number>();
		data.texts(choice.x).forEach((text, i) => {
			const name = text ?? "null";
			let place = known.get(name);
			if (place === undefined) {
				place = names.length;
				known.set(name, place);
				names.push(name);
			}
			raw[i] = place;
		});
	} else {
		const values = data.f64(choice.x);
		// Times may be told on the clock of the tables or since the session's start.
		const shift = kind === "time" && least(values) >= start ? start : 0;
		for (let i = 0; i < data.rows; i += 1) raw[i] = (values[i] ?? Number.NaN) - shift;
	}
	// Points stand in the middle of their category, bars cover it.
	if (kind === "category" && choice.form === "dots")
		for (let i = 0; i < raw.length; i += 1) raw[i] = (raw[i] ?? 0) + 0.5;
	const at = Float64Array.from(new Set([...raw].filter(Number.isFinite))).sort();
	const place = new Map<number, number>();
	at.forEach((value, i) => {
		place.set(value, i);
	});
	const keys = choice.series ? data.texts(choice.series) : null;
	const found = new Map<string, { key: string | null; label: string; values: Float64Array; total: number }>();
	let joined = 0;
	for (const column of choice.y) {
		const values = data.f64(column);
		for (let i = 0; i < data.rows; i += 1) {
			const index = place.get(raw[i] ?? Number.NaN);
			const value = values[i] ?? Number.NaN;
			if (index === undefined || !Number.isFinite(value)) continue;
			const key = keys ? (keys[i] ?? "null") : column;
			const label = keys && choice.y.length > 1 ? `${key} · ${column}` : key;
			let series = found.get(label);
			if (!series) {
				series = { key, label, values: new Float64Array(at.length).fill(Number.NaN), total: 0 };
				found.set(label, series);
			}
			const before = series.values[index] ?? Number.NaN;
			if (Number.isFinite(before)) joined += 1;
			series.values[index] = Number.isFinite(before) ? before + value : value;
			series.total += Math.abs(value);
		}
	}
	const all = keys ? [...found.values()].sort((a, b) => b.total - a.total) : [...found.values()];
	const step = kind === "category" ? 1 : stepOf(at);
	const first = kind === "category" ? 0 : (at[0] ?? 0);
	const last = kind === "category" ? Math.max(0, names.length - 1) : (at.at(-1) ?? 1);
	return {
		kind,
		at,
		names,
		span: { from: first, to: last + (step ?? 0) > first ? last + (step ?? 0) : first + 1 },
		step,
		series: [...all.slice(0, MOST), ...others(all.slice(MOST), at.length)],
		joined,
	};
}

function others(all: readonly { values: Float64Array }[], length: number): PlotData["series"] {
	if (all.length === 0) return [];
	const values = new Float64Array(length).fill(Number.NaN);
	for (const s of all) {
		for (let i = 0; i < length; i += 1) {
			const value = s.values[i] ?? Number.NaN;
			if (Number.isFinite(value)) values[i] = (values[i] || 0) + value;
		}
	}
	return [{ key: null, label: "all others", values }];
}

function least(values: Float64Array): number {
	let low = Number.POSITIVE_INFINITY;
	for (const v of values) if (v < low) low = v;
	return low;
}

/** The distance of which all distances are multiples, when that makes an even grid; null when it does not. */
function stepOf(at: Float64Array): number | null {
	if (at.length < 2) return null;
	let step = Number.POSITIVE_INFINITY;
	for (let i = 1; i < at.length; i += 1) step = Math.min(step, (at[i] ?? 0) - (at[i - 1] ?? 0));
	const first = at[0] ?? 0;
	// Gaps of an even grid are whole; more gaps than values and it is no grid that anybody meant.
	if (((at.at(-1) ?? 0) - first) / step > at.length * 20) return null;
	for (const value of at) {
		const steps = (value - first) / step;
		if (Math.abs(steps - Math.round(steps)) > 0.01) return null;
	}
	return step;
}

/** Values of an uneven or gappy grid at every step, as stacks and areas need them. */
export function evened(data: PlotData): PlotData {
	const { step, at } = data;
	if (step === null || at.length < 2) return data;
	const first = at[0] ?? 0;
	const length = Math.min(Math.round(((at.at(-1) ?? 0) - first) / step) + 1, 1 << 16);
	if (length === at.length) return data;
	const places = Int32Array.from(at, (value) => Math.round((value - first) / step));
	return {
		...data,
		at: Float64Array.from({ length }, (_, i) => first + i * step),
		series: data.series.map((s) => {
			const values = new Float64Array(length).fill(Number.NaN);
			places.forEach((to, from) => {
				values[to] = s.values[from] ?? Number.NaN;
			});
			return { ...s, values };
		}),
	};
}
