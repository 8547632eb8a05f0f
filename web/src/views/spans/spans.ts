// Spans of applications: their names with sums, the slowest of a name, and one of them with its calls.

import type { Columns } from "../../api/arrow";
import type { Name } from "../../lib/spans";

/** Time of the calls of a span, or of the spans of a name, in one layer. */
export interface LayerTime {
	layer: string;
	time: number;
}

/** The calls in a span, or in the spans of a name. */
export interface Inside {
	calls: number;
	/** Sum of their durations. */
	time: number;
	bytes: number;
	/** What devices moved for them. */
	deviceBytes: number;
	/** Adds up to `time`, the layer with the most time first. */
	layers: readonly LayerTime[];
}

export interface Named extends Name, Inside {
	spans: number;
	errors: number;
	total: number;
	p50: number;
	p99: number;
	max: number;
}

export interface Instance extends Inside {
	trace: string;
	id: string;
	/** Since the start of the session. */
	t: number;
	dur: number;
	pid: number | null;
	tid: number | null;
	failed: boolean;
	message: string | null;
}

/** A span of a trace, with its depth below the first one. */
export interface Member extends Name {
	id: string;
	parent: string | null;
	t: number;
	dur: number;
	failed: boolean;
}

/** A call in a span. */
export interface SpanCall {
	rid: number;
	t: number;
	dur: number;
	syscall: string;
	path: string | null;
	bytes: number;
	/** Name of the innermost span. */
	span: string | null;
}

/** `own`: a call counts for its innermost span only; otherwise for the spans around that, too. */
export type Counting = "all" | "own";

/** A span by its ids. */
export interface SpanId {
	trace: string;
	id: string;
}

/** The parameters of the question for the slowest spans of a name, and `asked` if it is one of the name. */
export function slowestOf(name: Name, counting: Counting, asked: SpanId | null): Record<string, string> {
	const params: Record<string, string> = { counting, kind: name.kind };
	if (name.service !== null) params["service"] = name.service;
	if (name.name !== null) params["name"] = name.name;
	if (asked) {
		params["trace"] = asked.trace;
		params["span"] = asked.id;
	}
	return params;
}

/** Rows of a thing lie together; each has one of its layers. */
function grouped<T>(answer: Columns, make: (first: number, inside: Inside) => T): T[] {
	const n = answer.f64("n");
	const names = answer.texts("layer");
	const self = answer.f64("self_ns");
	const number = (column: string, i: number) => answer.f64(column)[i] || 0;
	const made: T[] = [];
	for (let i = 0; i < answer.rows; ) {
		const first = i;
		const layers: LayerTime[] = [];
		for (; i < answer.rows && n[i] === n[first]; i += 1) {
			const layer = names[i];
			if (layer !== null && layer !== undefined) layers.push({ layer, time: self[i] || 0 });
		}
		made.push(
			make(first, {
				calls: number("calls", first),
				time: number("calls_ns", first),
				bytes: number("bytes", first),
				deviceBytes: number("device_bytes", first),
				layers,
			}),
		);
	}
	return made;
}

export function namesOf(answer: Columns): Named[] {
	const number = (column: string, i: number) => answer.f64(column)[i] || 0;
	// Of spans whose durations are not known there are none.
	const time = (column: string, i: number) => answer.f64(column)[i] ?? Number.NaN;
	return grouped(answer, (i, inside) => ({
		...inside,
		service: answer.text("service", i),
		name: answer.text("name", i),
		kind: answer.text("kind", i) ?? "",
		spans: number("spans", i),
		errors: number("errors", i),
		total: time("total_ns", i),
		p50: time("p50_ns", i),
		p99: time("p99_ns", i),
		max: time("max_ns", i),
	}));
}

export function instancesOf(answer: Columns): Instance[] {
	const id = (column: string, i: number) => {
		const value = answer.f64(column)[i] ?? Number.NaN;
		return Number.isNaN(value) ? null : value;
	};
	const failed = answer.flags("failed");
	return grouped(answer, (i, inside) => ({
		...inside,
		trace: answer.text("trace_id", i) ?? "",
		id: answer.text("span_id", i) ?? "",
		t: answer.f64("t")[i] ?? 0,
		dur: answer.f64("dur")[i] ?? 0,
		pid: id("pid", i),
		tid: id("tid", i),
		failed: failed[i] === true,
		message: answer.text("status_message", i),
	}));
}

export function membersOf(answer: Columns): Member[] {
	const [t, dur, failed] = [answer.f64("t"), answer.f64("dur"), answer.flags("failed")];
	return Array.from({ length: answer.rows }, (_, i) => ({
		id: answer.text("span_id", i) ?? "",
		parent: answer.text("parent_span_id", i),
		service: answer.text("service", i),
		name: answer.text("name", i),
		kind: answer.text("kind", i) ?? "",
		t: t[i] ?? 0,
		dur: dur[i] ?? 0,
		failed: failed[i] === true,
	}));
}

export function callsOf(answer: Columns): SpanCall[] {
	const [rid, t, dur, bytes] = ["rid", "t", "dur", "bytes"].map((name) => answer.f64(name));
	const calls = Array.from({ length: answer.rows }, (_, i) => ({
		rid: rid?.[i] ?? 0,
		t: t?.[i] ?? 0,
		dur: dur?.[i] ?? 0,
		bytes: bytes?.[i] || 0,
		syscall: answer.text("syscall", i) ?? "",
		path: answer.text("path", i),
		span: answer.text("span_name", i),
	}));
	return calls.sort((a, b) => a.t - b.t || a.rid - b.rid);
}

/** Spans below the ones that caused them, each with its depth; one whose parent is missing begins at depth 0. */
export function treeOf(members: readonly Member[]): (Member & { depth: number })[] {
	const known = new Set(members.map((member) => member.id));
	const below = new Map<string | null, Member[]>();
	for (const member of members) {
		const parent = member.parent !== null && known.has(member.parent) ? member.parent : null;
		below.set(parent, [...(below.get(parent) ?? []), member]);
	}
	const made: (Member & { depth: number })[] = [];
	const seen = new Set<string>();
	const add = (member: Member, depth: number) => {
		if (seen.has(member.id)) return;
		seen.add(member.id);
		made.push({ ...member, depth });
		for (const child of below.get(member.id) ?? []) add(child, depth + 1);
	};
	for (const first of below.get(null) ?? []) add(first, 0);
	// Parents that go round in a circle have no first one.
	for (const member of members) add(member, 0);
	return made;
}

/** A part of a bar, as shares of its length from 0 to 1. */
export interface Part {
	/** Null: time outside of recorded calls. */
	layer: string | null;
	time: number;
	share: number;
}

/**
 * Where the time of spans went, as parts of `total`. Calls of several threads at once may take longer together than the span:
 * then the calls are the whole.
 */
export function partsOf({ time, layers }: Inside, total: number): Part[] {
	// The duration of spans that are known from contexts only is not known.
	const whole = Math.max(total || 0, time, 1);
	const parts: Part[] = layers.map(({ layer, time: ns }) => ({ layer, time: ns, share: ns / whole }));
	const rest = whole - layers.reduce((sum, layer) => sum + layer.time, 0);
	if (rest > 0) parts.push({ layer: null, time: rest, share: rest / whole });
	return parts;
}
