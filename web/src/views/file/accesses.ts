// Reads, writes and page faults of one file as the server sends them: single ones while they are few, else cells of time and offset.

import type { Columns } from "../../api/arrow";
import type { Span } from "../../lib/scale";
import type { Pattern, Touches } from "./verdict";

/** What of an answer is needed. */
export type OffsetColumns = Pick<Columns, "rows" | "f64" | "flags" | "metaNumber" | "metaText">;

export interface Points {
	mode: "points";
	rows: number;
	t: Float64Array;
	dur: Float64Array;
	offset: Float64Array;
	bytes: Float64Array;
	write: boolean[];
	/** A page fault on a mapping of the file: how many bytes the program used is not known. */
	fault: boolean[];
	file: Float64Array;
	tid: Float64Array;
	rid: Float64Array;
}

export interface Cells {
	mode: "grid";
	rows: number;
	/** Cells across and up. */
	width: number;
	height: number;
	/** What they lie in. */
	time: Span;
	offsets: Span;
	x: Float64Array;
	y: Float64Array;
	reads: Float64Array;
	writes: Float64Array;
	/** Page faults, which are among the reads or writes, too. */
	faults: Float64Array;
	max: Float64Array;
	tid: Float64Array;
	/** The row of a cell; -1 for none. */
	at: Int32Array;
}

export interface Figures {
	read: number;
	readUnique: number;
	written: number;
	writtenUnique: number;
	/** How the reads follow each other; null when it is not known yet, or no thread has two. */
	reads: Pattern | null;
	writes: Pattern | null;
	/** How the page faults follow each other; null when that is not known, or no thread has two. */
	touches: Touches | null;
	/** Threads that read, wrote, or had page faults; 0 while that is not known. */
	threads: number;
	faults: number;
}

export interface Accesses {
	what: Points | Cells;
	/** The ends of the vertical axis. */
	offsets: Span;
	figures: Figures;
}

export function accessesOf(answer: OffsetColumns): Accesses {
	const meta = (name: string, otherwise: number) => answer.metaNumber(name) ?? otherwise;
	const from = meta("offset_from", 0);
	const offsets = { from, to: Math.max(meta("offset_to", from + 1), from + 1) };
	const figures: Figures = {
		read: meta("read_bytes", Number.NaN),
		readUnique: meta("read_unique_bytes", Number.NaN),
		written: meta("written_bytes", Number.NaN),
		writtenUnique: meta("written_unique_bytes", Number.NaN),
		...patternsOf(answer),
		faults: meta("faults", 0),
	};
	if (answer.metaText("mode") !== "grid") {
		const points: Points = {
			mode: "points",
			rows: answer.rows,
			t: answer.f64("t"),
			dur: answer.f64("dur"),
			offset: answer.f64("file_offset"),
			bytes: answer.f64("bytes"),
			write: answer.flags("write"),
			fault: answer.flags("fault"),
			file: answer.f64("file"),
			tid: answer.f64("tid"),
			rid: answer.f64("rid"),
		};
		figures.readUnique = uniqueBytes(points, false);
		figures.writtenUnique = uniqueBytes(points, true);
		return { what: points, offsets, figures };
	}
	const width = meta("width", 1);
	const height = meta("height", 1);
	const cells: Cells = {
		mode: "grid",
		rows: answer.rows,
		width,
		height,
		time: { from: meta("from", 0), to: meta("to", 1) },
		offsets,
		x: answer.f64("x"),
		y: answer.f64("y"),
		reads: answer.f64("reads"),
		writes: answer.f64("writes"),
		faults: answer.f64("faults"),
		max: answer.f64("max_ns"),
		tid: answer.f64("tid"),
		at: new Int32Array(width * height).fill(-1),
	};
	for (let i = 0; i < cells.rows; i += 1) {
		const x = cells.x[i] ?? -1;
		const y = cells.y[i] ?? -1;
		if (x >= 0 && x < width && y >= 0 && y < height) cells.at[y * width + x] = i;
	}
	return { what: cells, offsets, figures };
}

/** How reads, writes and page faults follow each other, as far as an answer tells. */
export function patternsOf(
	answer: Pick<Columns, "metaNumber">,
): Pick<Figures, "reads" | "writes" | "touches" | "threads"> {
	const of = (side: "read" | "written"): Pattern | null => {
		const [sequential, forward, backward, passes] = ["sequential", "forward", "backward", "passes"].map((name) =>
			answer.metaNumber(`${side}_${name}`),
		);
		return typeof sequential === "number" &&
			typeof forward === "number" &&
			typeof backward === "number" &&
			typeof passes === "number"
			? { sequential, forward, backward, passes }
			: null;
	};
	const [forward, backward, passes] = ["forward", "backward", "passes"].map((name) =>
		answer.metaNumber(`fault_${name}`),
	);
	const touches =
		typeof forward === "number" && typeof backward === "number" && typeof passes === "number"
			? { forward, backward, passes }
			: null;
	return { reads: of("read"), writes: of("written"), touches, threads: answer.metaNumber("threads") ?? 0 };
}

/** The row of the cell at a time and an offset; -1 for an empty one. */
export function cellAt(cells: Cells, t: number, offset: number): number {
	const x = Math.floor(((t - cells.time.from) / (cells.time.to - cells.time.from)) * cells.width);
	const y = Math.floor(((offset - cells.offsets.from) / (cells.offsets.to - cells.offsets.from)) * cells.height);
	if (x < 0 || x >= cells.width || y < 0 || y >= cells.height) return -1;
	return cells.at[y * cells.width + x] ?? -1;
}

/** The part of time and of the file that a cell stands for. */
export function cellSpan(cells: Cells, row: number): { time: Span; offsets: Span } {
	const wide = (cells.time.to - cells.time.from) / cells.width;
	const tall = (cells.offsets.to - cells.offsets.from) / cells.height;
	const x = cells.time.from + (cells.x[row] ?? 0) * wide;
	const y = cells.offsets.from + (cells.y[row] ?? 0) * tall;
	return { time: { from: x, to: x + wide }, offsets: { from: y, to: y + tall } };
}

/** Nothing further from the pointer than this many pixels is meant by it. */
const REACH = 12;

/** The access below or near a position; -1 for none. `perX` and `perY` are what a pixel stands for. */
export function nearest(points: Points, t: number, offset: number, perX: number, perY: number): number {
	let best = -1;
	let least = REACH * REACH;
	for (let i = 0; i < points.rows; i += 1) {
		const begin = points.t[i] ?? 0;
		const low = points.offset[i] ?? 0;
		const dx = outside(t, begin, begin + (points.dur[i] || 0)) / perX;
		if (dx > REACH) continue;
		const dy = outside(offset, low, low + (points.bytes[i] || 0)) / perY;
		const distance = dx * dx + dy * dy;
		if (distance < least) {
			least = distance;
			best = i;
		}
	}
	return best;
}

function outside(value: number, low: number, high: number): number {
	return value < low ? low - value : value > high ? value - high : 0;
}

/** Bytes that reads, or writes, touched, each counted once. Files that had one path in turn have different bytes. */
export function uniqueBytes(points: Points, write: boolean): number {
	const files = new Map<number, [number, number][]>();
	for (let i = 0; i < points.rows; i += 1) {
		if (points.write[i] !== write || points.fault[i]) continue;
		const begin = points.offset[i] ?? Number.NaN;
		if (!Number.isFinite(begin)) continue;
		const file = points.file[i] ?? Number.NaN;
		const part: [number, number] = [begin, begin + (points.bytes[i] || 0)];
		const parts = files.get(file);
		if (parts) parts.push(part);
		else files.set(file, [part]);
	}
	return [...files.values()].reduce((sum, parts) => sum + covered(parts), 0);
}

function covered(parts: [number, number][]): number {
	parts.sort((a, b) => a[0] - b[0]);
	let sum = 0;
	let reached = Number.NEGATIVE_INFINITY;
	for (const [begin, end] of parts) {
		if (end <= reached) continue;
		sum += end - Math.max(begin, reached);
		reached = end;
	}
	return sum;
}

/** How large a point is drawn at least, in pixels: a step every four times the length, from 2 to 9. */
export function leastSide(bytes: number): number {
	if (!(bytes > 512)) return 2;
	return Math.min(9, 2 + (Math.log2(bytes) - 9) / 2);
}

/** The access before or after a request in the order of time; -1 at the ends. The first one when there is none yet. */
export function neighbor(points: Points, rid: number | null, by: 1 | -1): number {
	if (points.rows === 0) return -1;
	const at = rid === null ? -1 : points.rid.indexOf(rid);
	if (at < 0) return by > 0 ? 0 : points.rows - 1;
	const next = at + by;
	return next >= 0 && next < points.rows ? next : -1;
}

/** Threads by how much they did in what is shown, most first. */
export function busiest(what: Points | Cells): number[] {
	const sums = new Map<number, number>();
	for (let i = 0; i < what.rows; i += 1) {
		const tid = what.tid[i];
		if (tid === undefined || !Number.isFinite(tid)) continue;
		const weight = what.mode === "points" ? 1 : (what.reads[i] || 0) + (what.writes[i] || 0);
		sums.set(tid, (sums.get(tid) ?? 0) + weight);
	}
	return [...sums.entries()].sort((a, b) => b[1] - a[1]).map(([tid]) => tid);
}
