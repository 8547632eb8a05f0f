// Spans of applications: their names with sums, the slowest of a name, and one of them with its calls. The SQL of
// each, and its rows.

import type { Columns } from "../../api/arrow";
import type { Name } from "../../lib/spans";
import { literal } from "../../lib/sql";

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

/** Spans with themselves and the spans around them; `where` chooses spans. A set: parents that go round in a circle end. */
function around(counting: Counting, where = "true"): string {
	const self = `SELECT trace_id, span_id, span_id AS top FROM spans WHERE ${where}`;
	if (counting === "own") return `around AS (${self})`;
	return `around AS (
    ${self}
    UNION
    SELECT a.trace_id, a.span_id, s.parent_span_id
    FROM around AS a JOIN spans AS s ON s.trace_id = a.trace_id AND s.span_id = a.top
    WHERE s.parent_span_id IS NOT NULL
)`;
}

/**
 * Sums of the calls in the spans of `chosen` by its number `n`, and their layers. A call counts once for a number, however
 * many of its spans contain it.
 */
function inside(counting: Counting): string {
	return `${around(counting)},
calls AS MATERIALIZED (
    SELECT DISTINCT s.n, c.rid, c.dur_ns, c.bytes
    FROM span_calls AS c JOIN around AS a USING (trace_id, span_id)
    JOIN chosen AS s ON s.trace_id = a.trace_id AND s.span_id = a.top
),
sums AS (
    SELECT n, count(*) AS calls, bounded(sum(dur_ns)) AS calls_ns, bounded(sum(bytes)) AS bytes
    FROM calls GROUP BY n
),
devices AS (SELECT n, bounded(sum(bios.bytes)) AS device_bytes FROM calls JOIN bios USING (rid) GROUP BY n),
layers AS (
    SELECT n, layer, bounded(sum(self_ns)) AS self_ns FROM calls JOIN all_slices USING (rid) GROUP BY n, layer
)`;
}

const JOINED = `LEFT JOIN sums AS c USING (n)
LEFT JOIN devices AS d USING (n)
LEFT JOIN layers AS l USING (n)`;

/** Names of the spans that began in the window; a row per name and layer. */
export function namesSql(counting: Counting): string {
	return `WITH RECURSIVE chosen AS (
    SELECT *, dense_rank() OVER (ORDER BY service, name, kind) AS n FROM spans WHERE ts_ns BETWEEN $from AND $to
),
${inside(counting)},
names AS (
    SELECT n, service, name, kind, count(*) AS spans, count(*) FILTER (status = 'error') AS errors,
        bounded(sum(dur_ns)) AS total_ns, quantile_disc(dur_ns, 0.5) AS p50_ns, quantile_disc(dur_ns, 0.99) AS p99_ns,
        max(dur_ns) AS max_ns
    FROM chosen GROUP BY ALL
)
SELECT names.*, c.calls, c.calls_ns, c.bytes, d.device_bytes, l.layer, l.self_ns
FROM names
${JOINED}
ORDER BY total_ns DESC, n, self_ns DESC, layer`;
}

/** A span by its ids. */
export interface SpanId {
	trace: string;
	id: string;
}

/** The slowest spans of a name that began in the window, and `asked` if it is one of the name; a row per span and layer. */
export function slowestSql(
	{ service, name, kind }: Name,
	counting: Counting,
	most: number,
	asked: SpanId | null = null,
): string {
	const is = (column: string, value: string | null) =>
		value === null ? `${column} IS NULL` : `${column} = ${literal(value)}`;
	return `WITH RECURSIVE chosen AS (
    SELECT *, row_number() OVER (ORDER BY dur_ns DESC, trace_id, span_id) AS n FROM spans
    WHERE ts_ns BETWEEN $from AND $to
        AND ${is("service", service)} AND ${is("name", name)} AND ${is("kind", kind)}
    QUALIFY n <= ${most}${asked ? ` OR (trace_id = ${literal(asked.trace)} AND span_id = ${literal(asked.id)})` : ""}
),
${inside(counting)}
SELECT n, s.trace_id, s.span_id, s.ts_ns - $start AS t, s.dur_ns AS dur, s.pid, s.tid, s.status = 'error' AS failed,
    s.status_message, c.calls, c.calls_ns, c.bytes, d.device_bytes, l.layer, l.self_ns
FROM chosen AS s
${JOINED}
ORDER BY n, l.self_ns DESC, l.layer`;
}

/** All spans of a trace, at most `most`. */
export function traceSql(trace: string, most: number): string {
	return `SELECT span_id, parent_span_id, service, name, kind, ts_ns - $start AS t, dur_ns AS dur,
    status = 'error' AS failed
FROM spans WHERE trace_id = ${literal(trace)} ORDER BY ts_ns, dur_ns DESC, span_id LIMIT ${most}`;
}

/** The calls in a span, in the order of time, at most `most` of them: the longest. */
export function callsSql(trace: string, span: string, counting: Counting, most: number): string {
	return `WITH RECURSIVE ${around(counting, `trace_id = ${literal(trace)}`)}
SELECT c.rid, c.ts_ns - $start AS t, c.dur_ns AS dur, c.syscall, c.path, c.bytes, c.span_name,
    count(*) OVER () AS calls
FROM span_calls AS c JOIN around AS a USING (trace_id, span_id)
WHERE a.top = ${literal(span)}
ORDER BY c.dur_ns DESC, c.rid LIMIT ${most}`;
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
	return grouped(answer, (i, inside) => ({
		...inside,
		service: answer.text("service", i),
		name: answer.text("name", i),
		kind: answer.text("kind", i) ?? "",
		spans: number("spans", i),
		errors: number("errors", i),
		total: number("total_ns", i),
		p50: number("p50_ns", i),
		p99: number("p99_ns", i),
		max: number("max_ns", i),
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
	const whole = Math.max(total, time, 1);
	const parts: Part[] = layers.map(({ layer, time: ns }) => ({ layer, time: ns, share: ns / whole }));
	const rest = whole - layers.reduce((sum, layer) => sum + layer.time, 0);
	if (rest > 0) parts.push({ layer: null, time: rest, share: rest / whole });
	return parts;
}
