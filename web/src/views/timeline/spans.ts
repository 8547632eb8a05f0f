// The application's spans above the calls of their threads.

import { useMemo } from "react";
import type { Columns } from "../../api/arrow";
import type { Span } from "../../lib/scale";
import type { Name } from "../../lib/spans";
import { resolveWindow, useColumns, useSession } from "../../state/session";
import { useRestedPage } from "../../state/store";

/** Deeper ones share the last row. */
const DEEPEST = 3;

export interface SpanBar extends Name {
	trace: string;
	id: string;
	t: number;
	dur: number;
	failed: boolean;
	/** Number of spans of the thread that it is in. */
	depth: number;
}

export interface ThreadSpans {
	from: number;
	to: number;
	/** Rows that the spans of a thread need at most. */
	rows: number;
	/** By thread, in the order of their begin. */
	threads: ReadonlyMap<number, readonly SpanBar[]>;
}

export function decodeSpans(answer: Columns, { from, to }: Span): ThreadSpans {
	const threads = new Map<number, SpanBar[]>();
	const [tid, t, dur, failed] = [answer.f64("tid"), answer.f64("t"), answer.f64("dur"), answer.flags("failed")];
	for (let i = 0; i < answer.rows; i += 1) {
		const list = threads.get(tid[i] ?? 0) ?? [];
		list.push({
			trace: answer.text("trace_id", i) ?? "",
			id: answer.text("span_id", i) ?? "",
			service: answer.text("service", i),
			name: answer.text("name", i),
			kind: answer.text("kind", i) ?? "",
			t: t[i] ?? 0,
			dur: dur[i] ?? 0,
			failed: failed[i] === true,
			depth: 0,
		});
		threads.set(tid[i] ?? 0, list);
	}
	let rows = 1;
	for (const list of threads.values()) rows = Math.max(rows, nest(list));
	return { from, to, rows, threads };
}

/** Puts spans in order, each into the first row in which no other is open; returns how many rows that takes. */
export function nest(spans: SpanBar[]): number {
	spans.sort((a, b) => a.t - b.t || b.dur - a.dur);
	const ends: number[] = [];
	for (const span of spans) {
		let row = ends.findIndex((end) => end <= span.t);
		if (row < 0) row = Math.min(ends.length, DEEPEST - 1);
		span.depth = row;
		ends[row] = Math.max(ends[row] ?? 0, span.t + span.dur);
	}
	return Math.max(1, ends.length);
}

/** The spans around the page's window; null while they are not there. */
export function useThreadSpans(wanted: boolean, tids: string): { spans: ThreadSpans | null; loading: boolean } {
	const page = useRestedPage();
	const { bounds } = useSession();
	const window = resolveWindow(page.window, bounds);
	// With what is beside the window, so that they are there when it moves a little.
	const room = window.to - window.from;
	const [from, to] = [Math.floor(window.from - room), Math.ceil(window.to + room)];
	const answer = useColumns(
		wanted && tids !== ""
			? { path: "questions/thread-spans", params: { tids, from, to }, windowed: false, filtered: false }
			: null,
	);
	// biome-ignore lint/correctness/useExhaustiveDependencies: the times are those that were asked for
	const spans = useMemo(() => (answer.data ? decodeSpans(answer.data, { from, to }) : null), [answer.data]);
	return { spans: wanted ? spans : null, loading: wanted && answer.loading };
}
