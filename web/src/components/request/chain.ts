// The critical path of a request: its segments as shapes that add up, as rows of a table, and in words.

import type { PathAnswer, PathKind, PathPart, PathSegment } from "../../api/types";
import { duration, percent } from "../../lib/format";

/** In the order in which they are stacked. */
export const KINDS: readonly (readonly [PathKind, string])[] = [
	["running", "on a CPU"],
	["runnable", "waiting for a CPU"],
	["device", "in the device"],
	["queue", "in the device's queue"],
	["completion", "completed, not yet woken"],
	["waiting", "waiting for something else"],
	["unknown", "not known"],
];

const LABELS = new Map<PathKind, string>(KINDS);

export function kindLabel(kind: PathKind): string {
	return LABELS.get(kind) ?? kind;
}

/** A segment, or short ones that the server has summed up. */
export interface Piece {
	t: number;
	dur: number;
	/** Null outside of a set of hosts, and when they are of several threads. */
	host: string | null;
	/** Null when they are of several threads. */
	tid: number | null;
	count: number;
	parts: readonly PathPart[];
	segment: PathSegment | null;
}

/** Whether two pieces are of one thread: each host has thread ids of its own. */
export function sameThread(a: Pick<Piece, "host" | "tid">, b: Pick<Piece, "host" | "tid">): boolean {
	return a.tid === b.tid && a.host === b.host;
}

/** All pieces in order of time: contiguous. */
export function piecesOf(answer: PathAnswer): Piece[] {
	const own = answer.segments.map(
		(segment): Piece => ({
			t: segment.t,
			dur: segment.dur_ns,
			host: segment.host,
			tid: segment.tid,
			count: 1,
			parts: [{ kind: segment.kind, dur_ns: segment.dur_ns }],
			segment,
		}),
	);
	const rest = answer.rest.map(
		(rest): Piece => ({
			t: rest.t,
			dur: rest.dur_ns,
			host: rest.host,
			tid: rest.tid,
			count: rest.segments,
			parts: rest.parts,
			segment: null,
		}),
	);
	return [...own, ...rest].sort((a, b) => a.t - b.t);
}

/** What is drawn as one: the heights of its parts are their shares of its width, so that areas are times. */
export interface Shape {
	t: number;
	/** With gaps that cannot be seen. */
	width: number;
	/** The sum of its pieces. */
	dur: number;
	count: number;
	parts: PathPart[];
	/** When it is only one. */
	segment: PathSegment | null;
}

/** Pieces in order of time; those narrower than `pixel`, and close to each other, as one. */
export function shapesOf(pieces: readonly Piece[], pixel: number): Shape[] {
	const shapes: Shape[] = [];
	let open: Shape | null = null;
	for (const piece of pieces) {
		const narrow = piece.dur < pixel;
		if (open && narrow && open.width < pixel && piece.t - (open.t + open.width) < pixel) {
			open.width = piece.t + piece.dur - open.t;
			open.dur += piece.dur;
			open.count += piece.count;
			open.parts = sumOf([...open.parts, ...piece.parts]);
			open.segment = null;
			continue;
		}
		const shape: Shape = {
			t: piece.t,
			width: piece.dur,
			dur: piece.dur,
			count: piece.count,
			parts: sumOf(piece.parts),
			segment: piece.segment,
		};
		shapes.push(shape);
		open = narrow ? shape : null;
	}
	return shapes;
}

/** The sums by kind, in the order of KINDS. */
export function sumOf(parts: readonly PathPart[]): PathPart[] {
	return KINDS.flatMap(([kind]) => {
		const dur_ns = parts.reduce((a, part) => (part.kind === kind ? a + part.dur_ns : a), 0);
		return dur_ns > 0 ? [{ kind, dur_ns }] : [];
	});
}

/** A row of the table: a segment, or shorter ones between two of them. */
export interface ChainRow {
	t: number;
	dur: number;
	count: number;
	segment: PathSegment | null;
}

/** At most `most` segments have rows of their own: the longest ones. */
export function rowsOf(pieces: readonly Piece[], most: number): ChainRow[] {
	const longest = pieces.filter((piece) => piece.segment !== null).sort((a, b) => b.dur - a.dur);
	const own = new Set(longest.slice(0, most));
	const rows: ChainRow[] = [];
	let open: { row: ChainRow; only: Piece } | null = null;
	for (const piece of pieces) {
		if (own.has(piece)) {
			rows.push({ t: piece.t, dur: piece.dur, count: 1, segment: piece.segment });
			open = null;
		} else if (open) {
			open.row.dur += piece.dur;
			open.row.count += piece.count;
			open.row.segment = null;
		} else {
			// One alone takes no more room than the row that stands for it.
			const row: ChainRow = { t: piece.t, dur: piece.dur, count: piece.count, segment: piece.segment };
			rows.push(row);
			open = { row, only: piece };
		}
	}
	return rows;
}

/** A sentence instead of a plot of which nothing could be learned; null when there is more to see. */
export function plainOf(answer: PathAnswer): string | null {
	if (answer.why_not !== null) return answer.why_not;
	const pieces = piecesOf(answer);
	if (pieces.length === 0) return "It took no time that could be measured.";
	const ran = pieces.every(
		(piece) => sameThread(piece, answer) && piece.parts.every((part) => part.kind === "running"),
	);
	return ran ? `Its thread ran on a CPU for all of its ${duration(answer.dur_ns)}: it waited for nothing.` : null;
}

/** The plot in words. */
export function summaryOf(answer: PathAnswer): string {
	const sums = sumOf(piecesOf(answer).flatMap((piece) => piece.parts));
	const shares = [...sums]
		.sort((a, b) => b.dur_ns - a.dur_ns)
		.map(
			({ kind, dur_ns }) => `${kindLabel(kind)} ${duration(dur_ns)} (${percent(dur_ns / Math.max(1, answer.dur_ns))})`,
		);
	const threads = answer.threads.length === 1 ? "1 thread" : `${answer.threads.length} threads`;
	return `Critical path of ${duration(answer.dur_ns)} over ${threads}: ${shares.join(", ")}`;
}
