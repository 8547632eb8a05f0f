// The states of threads: single periods, or the time by state in buckets.

import { useMemo } from "react";
import type { Columns } from "../../api/arrow";
import { colorOf, type Theme } from "../../lib/color";
import type { Span } from "../../lib/scale";
import { useColumns } from "../../state/session";
import type { Lane } from "./lanes";

/** Buckets over the width of the screen. */
const BUCKETS = 500;

export interface States {
	mode: "periods" | "sums" | "many" | "none";
	from: number;
	to: number;
	/** Of sums. */
	bucket: number;
	lost: number;
	/** By thread: its first row, and the one behind its last. */
	threads: ReadonlyMap<number, readonly [number, number]>;
	state: readonly string[];
	reason: readonly string[];
	t: Float64Array;
	/** Within the window, or of sums the time in the bucket. */
	dur: Float64Array;
	/** Of periods, NaN where it is not known: the whole length, and what the wait was. */
	whole: Float64Array;
	began: Float64Array;
	rid: Float64Array;
	wakerTid: Float64Array;
	woken: Float64Array;
	causeId: Float64Array;
	waker: readonly string[];
	cause: readonly string[];
	call: readonly string[];
}

export type StateColumns = Pick<Columns, "rows" | "f64" | "codes" | "metaNumber" | "metaText">;

export function decodeStates(columns: StateColumns): States {
	const told = columns.metaText("mode");
	const mode = told === "periods" || told === "sums" || told === "many" ? told : "none";
	const lane = columns.f64("lane");
	const threads = new Map<number, readonly [number, number]>();
	for (let i = 0; i < columns.rows; ) {
		let end = i + 1;
		while (end < columns.rows && lane[end] === lane[i]) end += 1;
		threads.set(lane[i] ?? 0, [i, end]);
		i = end;
	}
	const words = (name: string) => {
		const { codes, values } = columns.codes(name);
		return Array.from(codes, (code) => values[code] ?? "");
	};
	return {
		mode,
		from: columns.metaNumber("from") ?? 0,
		to: columns.metaNumber("to") ?? 0,
		bucket: columns.metaNumber("bucket_ns") ?? 0,
		lost: columns.metaNumber("lost") ?? 0,
		threads,
		state: words("state"),
		reason: words("reason"),
		t: columns.f64("t"),
		dur: columns.f64(mode === "sums" ? "time_ns" : "dur"),
		whole: columns.f64("whole"),
		began: columns.f64("began"),
		rid: columns.f64("rid"),
		wakerTid: columns.f64("waker_tid"),
		woken: columns.f64("woken"),
		causeId: columns.f64("cause_id"),
		waker: words("waker"),
		cause: words("cause"),
		call: words("in_syscall"),
	};
}

/** What a row is counted as: a state, or the reason of a blocked one. */
export function keyOf(states: Pick<States, "state" | "reason">, row: number): string {
	const state = states.state[row] ?? "";
	return state === "blocked" ? `blocked: ${states.reason[row] ?? ""}` : state;
}

const BLOCKED = "blocked: ";

export function colorOfKey(key: string, theme: Theme): string {
	return key.startsWith(BLOCKED) ? colorOf("reason", key.slice(BLOCKED.length), theme) : colorOf("state", key, theme);
}

const UNKNOWN: Readonly<Record<string, string>> = {
	unseen_start: "the thread is older than the recording, and nothing of it was seen yet",
	unseen_return: "it left the CPU, and its return was not seen",
	no_waits: "no wait of this thread was recorded",
	not_recorded: "waits outside of requests were not recorded",
	not_ended: "no row of the thread follows yet: it runs, or waits still",
	dropped: "the rows of this time were dropped (--keep)",
};

export function labelOf(key: string): string {
	if (key === "runnable") return "waiting for a CPU";
	if (key === "unknown") return "not known";
	return key.replaceAll("_", " ");
}

export function whyUnknown(reason: string): string {
	return UNKNOWN[reason] ?? reason;
}

/** What a thread did at a time. */
export function shareAt(
	states: States,
	tid: number,
	t: number,
): { row: number | null; parts: (readonly [string, number])[] } | null {
	const [first, end] = states.threads.get(tid) ?? [0, 0];
	const parts: (readonly [string, number])[] = [];
	for (let i = first; i < end; i += 1) {
		const begin = states.t[i] ?? 0;
		const length = states.mode === "sums" ? states.bucket : (states.dur[i] ?? 0);
		if (t < begin || t >= begin + length) continue;
		parts.push([keyOf(states, i), states.dur[i] ?? 0]);
		if (states.mode === "periods") return { row: i, parts };
	}
	return parts.length > 0 ? { row: null, parts } : null;
}

/** Shares of the time of all threads that were asked about, largest first. */
export function sharesOf(states: States): (readonly [string, number])[] {
	const sums = new Map<string, number>();
	let all = 0;
	for (let i = 0; i < states.dur.length; i += 1) {
		const key = keyOf(states, i);
		sums.set(key, (sums.get(key) ?? 0) + (states.dur[i] ?? 0));
		all += states.dur[i] ?? 0;
	}
	return [...sums].map(([key, ns]) => [key, ns / all] as const).sort((a, b) => b[1] - a[1]);
}

/** A wake-up, from the waker's lane to that of the woken thread. */
export interface Wake {
	row: number;
	t: number;
	from: number;
	to: number;
}

/** The wake-ups in a window between threads with a lane. */
export function wakesOf(states: States, rows: readonly Lane[], span: Span): Wake[] {
	if (states.mode !== "periods") return [];
	const lanes = new Map<number, number>();
	rows.forEach((row, lane) => {
		for (const { tid } of row.members) lanes.set(tid, lane);
	});
	const wakes: Wake[] = [];
	for (const [tid, [first, end]] of states.threads) {
		const to = lanes.get(tid);
		if (to === undefined) continue;
		for (let i = first; i < end; i += 1) {
			const t = states.woken[i] ?? Number.NaN;
			const from = lanes.get(states.wakerTid[i] ?? -1);
			if (states.state[i] !== "blocked" || from === undefined || from === to) continue;
			if (t >= span.from && t <= span.to) wakes.push({ row: i, t, from, to });
		}
	}
	return wakes;
}

/** The states of threads in the page's window; null while they are not there. */
export function useStates(wanted: boolean, tids: string): { states: States | null; loading: boolean } {
	const answer = useColumns(
		wanted && tids !== "" ? { path: "states", params: { lanes: tids }, pixels: BUCKETS, filtered: false } : null,
	);
	const states = useMemo(() => (answer.data ? decodeStates(answer.data) : null), [answer.data]);
	return { states: wanted ? states : null, loading: wanted && answer.loading };
}
