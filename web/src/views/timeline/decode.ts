// A tile of the timeline as the renderer needs it: one part a thread, sums or single calls.

import type { Columns } from "../../api/arrow";
import type { Span } from "../../lib/scale";
import { TILE_BUCKETS } from "./tiles";

/** A thread's calls in a tile are drawn one by one up to this many: a third of the pixels of a tile. */
export const MOST_SINGLE = 340;

/** Sums of a thread in the buckets of a tile. */
export interface Density {
	calls: Float64Array;
	errors: Float64Array;
	/** Time in calls, where it was spent: a call that is longer than its bucket fills those after it. */
	time: Float64Array;
	max: Float64Array;
	bytes: Float64Array;
	/** At the begin of a bucket: how much longer a call that began in a bucket before it takes. */
	carried: Float64Array;
}

/** Single calls of a thread, in order of time. */
export interface Calls {
	length: number;
	t: Float64Array;
	dur: Float64Array;
	rid: Float64Array;
	depth: Uint8Array;
	syscall: Int32Array;
	errno: Int32Array;
	bytes: Float64Array;
	label: (string | null)[];
	/** Operations that stand below each other at most, less one. */
	deepest: number;
}

export interface LanePart {
	/** Calls one by one; null when there are too many. */
	calls: Calls | null;
	/** How many there are. */
	count: number;
	density: Density | null;
}

export interface TileData {
	lanes: Map<number, LanePart>;
	/** Every thread's calls are there one by one: no narrower tile would show more. */
	complete: boolean;
	/** How many buckets sums have, and their width. */
	buckets: number;
	bucket: number;
	/** Buckets are wider than was asked for. */
	coarse: boolean;
	/** Names that `syscall` and `errno` of calls point to. */
	syscalls: string[];
	errnos: string[];
}

function emptyDensity(buckets: number): Density {
	const make = () => new Float64Array(buckets);
	return { calls: make(), errors: make(), time: make(), max: make(), bytes: make(), carried: make() };
}

/** Decodes an answer of `/timeline` for the span of a tile. */
export function decodeTile(columns: Columns, span: Span): TileData {
	return columns.metaText("mode") === "events" ? decodeEvents(columns, span) : decodeDensity(columns, span);
}

function decodeDensity(columns: Columns, span: Span): TileData {
	// Where narrower buckets would need too many rows the answer has wider ones.
	const given = columns.metaNumber("bucket_ns") ?? 0;
	const width = span.to - span.from;
	const buckets = Math.max(1, Math.min(TILE_BUCKETS, Math.round(width / Math.max(given, width / TILE_BUCKETS))));
	const bucket = width / buckets;
	// Of a bucket that is wider than the tile, the share that lies in it.
	const share = given > bucket ? bucket / given : 1;
	const lanes = new Map<number, LanePart>();
	const lane = columns.f64("lane");
	const t = columns.f64("t");
	const calls = columns.f64("calls");
	const errors = columns.f64("errors");
	const time = columns.f64("time_ns");
	const max = columns.f64("max_ns");
	const bytes = columns.f64("bytes");
	for (let i = 0; i < columns.rows; i += 1) {
		const from = t[i] ?? 0;
		const place = share < 1 ? 0 : Math.floor((from - span.from) / bucket + 1e-6);
		if (place < 0 || place >= buckets || from + Math.max(given, bucket) <= span.from || from >= span.to) continue;
		const tid = lane[i] ?? 0;
		let part = lanes.get(tid);
		if (!part) {
			part = { calls: null, count: 0, density: emptyDensity(buckets) };
			lanes.set(tid, part);
		}
		if (!part.density) continue;
		part.count += calls[i] ?? 0;
		addTo(part.density.calls, place, calls[i]);
		addTo(part.density.errors, place, errors[i]);
		addTo(part.density.time, place, (time[i] ?? 0) * share);
		addTo(part.density.bytes, place, bytes[i]);
		part.density.max[place] = Math.max(part.density.max[place] ?? 0, max[i] || 0);
	}
	for (const part of lanes.values()) if (part.density) spread(part.density, bucket);
	return { lanes, complete: false, buckets, bucket, coarse: given > width / TILE_BUCKETS, syscalls: [], errnos: [] };
}

function addTo(array: Float64Array, place: number, value: number | undefined): void {
	if (value !== undefined && Number.isFinite(value)) array[place] = (array[place] ?? 0) + value;
}

/**
 * Sums hold a call's whole time in the bucket in which it began. What exceeds a bucket belongs to those after it, as
 * far as the longest call reaches.
 */
export function spread(density: Pick<Density, "time" | "max" | "carried">, bucket: number): void {
	let carried = 0;
	let reach = 0;
	for (let i = 0; i < density.time.length; i += 1) {
		const own = density.time[i] ?? 0;
		reach = Math.max(reach - bucket, density.max[i] ?? 0);
		density.carried[i] = carried;
		const all = own + carried;
		const here = Math.min(all, bucket);
		density.time[i] = here;
		carried = reach > bucket ? all - here : 0;
	}
}

function decodeEvents(columns: Columns, span: Span): TileData {
	const lane = columns.f64("lane");
	const t = columns.f64("t");
	const rows = new Map<number, number[]>();
	for (let i = 0; i < columns.rows; i += 1) {
		const tid = lane[i] ?? 0;
		const list = rows.get(tid);
		if (list) list.push(i);
		else rows.set(tid, [i]);
	}
	const syscall = columns.codes("syscall");
	const errno = columns.codes("errno");
	const source = {
		t,
		dur: columns.f64("dur"),
		rid: columns.f64("rid"),
		depth: columns.has("depth") ? columns.f64("depth") : new Float64Array(columns.rows),
		bytes: columns.f64("bytes"),
		syscall: syscall.codes,
		errno: errno.codes,
		label: columns.texts("label"),
	};
	const lanes = new Map<number, LanePart>();
	let complete = true;
	for (const [tid, list] of rows) {
		list.sort((a, b) => (t[a] ?? 0) - (t[b] ?? 0));
		const single = list.length <= MOST_SINGLE;
		if (!single) complete = false;
		lanes.set(tid, {
			count: list.length,
			calls: single ? pick(source, list) : null,
			density: single ? null : sumUp(source, list, span),
		});
	}
	return {
		lanes,
		complete,
		buckets: TILE_BUCKETS,
		bucket: (span.to - span.from) / TILE_BUCKETS,
		coarse: false,
		syscalls: syscall.values,
		errnos: errno.values,
	};
}

interface Source {
	t: Float64Array;
	dur: Float64Array;
	rid: Float64Array;
	depth: Float64Array;
	bytes: Float64Array;
	syscall: Int32Array;
	errno: Int32Array;
	label: (string | null)[];
}

function pick(source: Source, rows: readonly number[]): Calls {
	const numbers = (from: Float64Array) => Float64Array.from(rows, (i) => from[i] ?? 0);
	const depth = Uint8Array.from(rows, (i) => Math.min(255, source.depth[i] || 0));
	return {
		length: rows.length,
		t: numbers(source.t),
		// A call that has not ended and whose time is unknown is a point.
		dur: Float64Array.from(rows, (i) => source.dur[i] || 0),
		rid: numbers(source.rid),
		depth,
		syscall: Int32Array.from(rows, (i) => source.syscall[i] ?? -1),
		errno: Int32Array.from(rows, (i) => source.errno[i] ?? -1),
		bytes: numbers(source.bytes),
		label: rows.map((i) => source.label[i] ?? null),
		deepest: depth.reduce((a, b) => Math.max(a, b), 0),
	};
}

/** Too many calls to draw one by one, as sums; the time of each where it was spent. */
function sumUp(source: Source, rows: readonly number[], span: Span): Density {
	const made = emptyDensity(TILE_BUCKETS);
	const bucket = (span.to - span.from) / TILE_BUCKETS;
	for (const i of rows) {
		const from = source.t[i] ?? 0;
		const dur = source.dur[i] || 0;
		const place = Math.floor((from - span.from) / bucket);
		if (place >= 0 && place < TILE_BUCKETS) {
			addTo(made.calls, place, 1);
			addTo(made.errors, place, (source.errno[i] ?? -1) >= 0 ? 1 : 0);
			addTo(made.bytes, place, source.bytes[i]);
			made.max[place] = Math.max(made.max[place] ?? 0, dur);
		}
		const last = Math.min(TILE_BUCKETS - 1, Math.floor((from + dur - span.from) / bucket));
		for (let b = Math.max(0, place); b <= last; b += 1) {
			const begin = span.from + b * bucket;
			addTo(made.time, b, Math.min(from + dur, begin + bucket) - Math.max(from, begin));
		}
	}
	return made;
}
