// What lies below the calls of threads: a row for each layer, with single visits, or with the layer's own time where
// there are many.

import { useMemo, useRef } from "react";
import type { Columns } from "../../api/arrow";
import { byLayer } from "../../lib/layers";
import { useColumns } from "../../state/session";
import { spread } from "./decode";

/** Buckets over the width of the screen. */
const BUCKETS = 700;

/** Visits of one layer in the calls of one thread, in order of time. */
export interface Visits {
	length: number;
	t: Float64Array;
	dur: Float64Array;
	self: Float64Array;
	rid: Float64Array;
	name: string[];
}

/** The own time of one layer in the calls of one thread, by bucket. */
export interface LayerSums {
	visits: Float64Array;
	/** Where it was spent: what is longer than its bucket fills those after it. */
	time: Float64Array;
	max: Float64Array;
	carried: Float64Array;
}

export interface LayerRow {
	visits: Visits | null;
	sums: LayerSums | null;
}

export interface Below {
	/** `many`: there are too many calls to look below each. */
	mode: "visits" | "sums" | "many";
	/** Begin and width of the buckets of sums, and how many there are. */
	from: number;
	bucket: number;
	buckets: number;
	/** End of what the answer is about. */
	to: number;
	/** By thread and layer. */
	threads: ReadonlyMap<number, ReadonlyMap<string, LayerRow>>;
	/** Layers that have something, in their order. */
	layers: readonly string[];
}

export type BelowColumns = Pick<Columns, "rows" | "f64" | "codes" | "metaNumber" | "metaText">;

export function decodeBelow(columns: BelowColumns): Below {
	const told = columns.metaText("mode");
	const mode = told === "visits" || told === "sums" ? told : "many";
	const from = columns.metaNumber("from") ?? 0;
	const bucket = columns.metaNumber("bucket_ns") ?? 0;
	const width = (columns.metaNumber("to") ?? from) - from;
	const buckets = mode === "sums" && bucket > 0 ? Math.max(1, Math.ceil(width / bucket)) : 0;
	const threads = new Map<number, Map<string, LayerRow>>();
	const layers = new Set<string>();
	if (mode !== "many") {
		const lane = columns.f64("lane");
		const { codes, values } = columns.codes("layer");
		for (let i = 0; i < columns.rows; ) {
			// The rows of a thread and layer stand together.
			let end = i + 1;
			while (end < columns.rows && lane[end] === lane[i] && codes[end] === codes[i]) end += 1;
			const layer = values[codes[i] ?? -1] ?? "";
			const rows = threads.get(lane[i] ?? 0) ?? new Map<string, LayerRow>();
			threads.set(lane[i] ?? 0, rows);
			layers.add(layer);
			rows.set(
				layer,
				mode === "visits"
					? { visits: visitsOf(columns, i, end), sums: null }
					: { visits: null, sums: sumsOf(columns, i, end, from, bucket, buckets) },
			);
			i = end;
		}
	}
	return { mode, from, bucket, buckets, to: from + width, threads, layers: inOrder(layers) };
}

function visitsOf(columns: BelowColumns, first: number, end: number): Visits {
	const part = (name: string) => columns.f64(name).subarray(first, end);
	const { codes, values } = columns.codes("name");
	return {
		length: end - first,
		t: part("t"),
		dur: part("dur"),
		self: part("self_ns"),
		rid: part("rid"),
		name: Array.from(codes.subarray(first, end), (code) => values[code] ?? ""),
	};
}

function sumsOf(
	columns: BelowColumns,
	first: number,
	end: number,
	from: number,
	bucket: number,
	buckets: number,
): LayerSums {
	const made: LayerSums = {
		visits: new Float64Array(buckets),
		time: new Float64Array(buckets),
		max: new Float64Array(buckets),
		carried: new Float64Array(buckets),
	};
	const [t, visits, time, max] = ["t", "visits", "time_ns", "max_ns"].map((name) => columns.f64(name));
	for (let i = first; i < end; i += 1) {
		const place = Math.floor(((t?.[i] ?? 0) - from) / bucket + 1e-6);
		if (place < 0 || place >= buckets) continue;
		made.visits[place] = visits?.[i] ?? 0;
		made.time[place] = time?.[i] ?? 0;
		made.max[place] = max?.[i] ?? 0;
	}
	spread(made, bucket);
	return made;
}

function inOrder(layers: ReadonlySet<string>): string[] {
	return [...layers].sort(byLayer);
}

/**
 * What is below the calls of some threads in the page's window; null while it is not wanted or not there. Rows that were
 * there once stay while it is wanted, so that lanes keep their height.
 */
export function useBelow(
	wanted: boolean,
	tids: string,
): { below: Below | null; rows: readonly string[]; loading: boolean } {
	const answer = useColumns(
		wanted && tids !== "" ? { path: "visits", params: { lanes: tids }, pixels: BUCKETS } : null,
	);
	const below = useMemo(() => (answer.data ? decodeBelow(answer.data) : null), [answer.data]);
	const seen = useRef<readonly string[]>([]);
	if (!wanted) seen.current = [];
	else if (below?.layers.some((layer) => !seen.current.includes(layer)))
		seen.current = inOrder(new Set([...seen.current, ...below.layers]));
	return { below: wanted ? below : null, rows: seen.current, loading: wanted && answer.loading };
}
