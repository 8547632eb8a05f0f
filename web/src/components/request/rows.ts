// Rows of one request as the waterfall shows them: a line for each part of a layer, with all its visits.

import type { RequestAnswer, Row } from "../../api/types";
import type { Span } from "../../lib/scale";

export function number(row: Row, name: string): number | null {
	const value = row[name];
	return typeof value === "number" ? value : null;
}

export function text(row: Row, name: string): string | null {
	const value = row[name];
	return value === null || value === undefined ? null : String(value);
}

export interface Visit {
	t: number;
	dur: number;
	/** What stands beside the pointer, besides the times. */
	note: string;
}

export interface Line {
	layer: string;
	name: string;
	depth: number;
	visits: Visit[];
	/** Time that was this part's own; lines of a request add up to it. Null for lines that are no part of the sum. */
	self: number | null;
}

/** The time that a request took; a call that has not ended took what it had taken so far. */
export function spanOf(row: Row): Span {
	const from = number(row, "ts_ns") ?? 0;
	return { from, to: from + Math.max(1, number(row, "dur_ns") ?? 1) };
}

/** One line for every part of a layer, in the order of their depth and first visit. */
export function linesOf(answer: RequestAnswer): Line[] {
	const lines = new Map<string, Line>();
	const name = text(answer.row, "syscall") ?? answer.table;
	if (answer.slices.length === 0) {
		const { from, to } = spanOf(answer.row);
		return [{ layer: "syscall", name, depth: 0, visits: [{ t: from, dur: to - from, note: "" }], self: to - from }];
	}
	for (const slice of answer.slices) {
		const layer = text(slice, "layer") ?? "";
		const part = text(slice, "name") ?? "";
		const depth = number(slice, "depth") ?? 0;
		const key = `${depth} ${layer} ${part}`;
		let line = lines.get(key);
		if (!line) {
			line = { layer, name: part, depth, visits: [], self: 0 };
			lines.set(key, line);
		}
		const t = number(slice, "ts_ns") ?? 0;
		const own = number(slice, "self_ns") ?? 0;
		line.visits.push({ t, dur: number(slice, "dur_ns") ?? 0, note: waiting(answer, layer, t) });
		line.self = (line.self ?? 0) + own;
	}
	return [...lines.values()].sort((a, b) => a.depth - b.depth || (a.visits[0]?.t ?? 0) - (b.visits[0]?.t ?? 0));
}

/** Who ended a wait. */
function waiting(answer: RequestAnswer, layer: string, t: number): string {
	if (layer !== "sched") return "";
	const wait = answer.waits.find((w) => number(w, "ts_ns") === t);
	const waker = wait ? text(wait, "waker") : null;
	return waker ? `woken by ${waker}` : "";
}

/** The times of a request to a device, as the phases between them. */
export interface Phase {
	name: string;
	t: number;
	dur: number;
	layer: string;
}

const TIMES = ["queued_at_ns", "started_at_ns", "inserted_at_ns", "issued_at_ns", "completed_at_ns"] as const;
const NAMES: Readonly<Record<string, string>> = {
	queued_at_ns: "waits for a request",
	started_at_ns: "plugged",
	inserted_at_ns: "in the scheduler's queue",
	issued_at_ns: "in the device",
};

export function phasesOf(block: Row): Phase[] {
	const known = TIMES.flatMap((name) => {
		const t = number(block, name);
		return t === null ? [] : [{ name, t }];
	});
	const phases: Phase[] = [];
	for (let i = 0; i + 1 < known.length; i += 1) {
		const here = known[i];
		const next = known[i + 1];
		if (!here || !next) continue;
		phases.push({
			name: NAMES[here.name] ?? here.name,
			t: here.t,
			dur: next.t - here.t,
			layer: here.name === "issued_at_ns" ? "device" : "block",
		});
	}
	return phases;
}
