// The lanes: which thread stands where.

import type { ThreadRow } from "../../api/types";
import { BLOCK_LANES } from "./tiles";

const LANE_HEIGHTS = [56, 50, 44, 38, 32, 28] as const;
export const RULER_HEIGHT = 26;

export type Order = "tree" | "time" | "start" | "name";

interface Weight {
	time: number;
	start: number;
	name: string;
}

const COMPARE: Readonly<Record<Order, (a: Weight, b: Weight) => number>> = {
	tree: (a, b) => b.time - a.time,
	time: (a, b) => b.time - a.time,
	start: (a, b) => a.start - b.start || 0,
	name: (a, b) => a.name.localeCompare(b.name),
};

/** Where the process of a thread is not known, the thread is one of its own. */
function processOf(thread: ThreadRow): number {
	return thread.pid ?? -thread.tid;
}

/**
 * Threads in the order of their lanes: those of a process together, the process with the most time first; as a tree
 * each process is followed by those that it started, and counts with them.
 */
export function orderThreads(threads: readonly ThreadRow[], order: Order): ThreadRow[] {
	const compare = COMPARE[order];
	const start = (t: ThreadRow) => t.start ?? Number.MAX_VALUE;
	const processes = new Map<number, Weight & { threads: ThreadRow[]; parent: number | null }>();
	for (const thread of threads) {
		const known = processes.get(processOf(thread));
		if (known) {
			known.time += thread.time_ns;
			known.start = Math.min(known.start, start(thread));
			known.threads.push(thread);
		} else {
			processes.set(processOf(thread), {
				time: thread.time_ns,
				start: start(thread),
				name: thread.process ?? thread.comm ?? "",
				threads: [thread],
				parent: thread.parent,
			});
		}
	}
	const own = (t: ThreadRow): Weight => ({ time: t.time_ns, start: start(t), name: t.comm ?? "" });
	for (const process of processes.values()) {
		process.threads.sort((a, b) => {
			// The thread that the process began with leads the others.
			const leads = Number(b.tid === b.pid) - Number(a.tid === a.pid);
			return leads || compare(own(a), own(b)) || a.tid - b.tid;
		});
	}
	const all = [...processes.keys()];
	const weight = new Map<number, Weight>(processes);
	const children = new Map<number | null, number[]>();
	for (const id of all) {
		const parent = order === "tree" ? (processes.get(id)?.parent ?? null) : null;
		const above = parent !== null && processes.has(parent) ? parent : null;
		const list = children.get(above);
		if (list) list.push(id);
		else children.set(above, [id]);
	}
	if (order === "tree") for (const root of children.get(null) ?? []) addUp(root, children, weight);
	const sorted = (ids: readonly number[]) =>
		[...ids].sort((a, b) => compare(weight.get(a) ?? NONE, weight.get(b) ?? NONE) || a - b);
	const made: ThreadRow[] = [];
	const waiting = sorted(children.get(null) ?? []).reverse();
	for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
		made.push(...(processes.get(id)?.threads ?? []));
		waiting.push(...sorted(children.get(id) ?? []).reverse());
		processes.delete(id);
	}
	// Ids are given again, so that a process may seem to be below itself.
	for (const { threads: left } of processes.values()) made.push(...left);
	return made;
}

const NONE: Weight = { time: 0, start: 0, name: "" };

/** Gives a process the time of those below it, too. */
function addUp(root: number, children: ReadonlyMap<number | null, number[]>, weight: Map<number, Weight>): void {
	const order: number[] = [];
	const waiting = [root];
	for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
		order.push(id);
		waiting.push(...(children.get(id) ?? []));
	}
	for (const id of order.reverse()) {
		const own = weight.get(id);
		if (!own) continue;
		const below = (children.get(id) ?? []).reduce((a, child) => a + (weight.get(child)?.time ?? 0), 0);
		weight.set(id, { ...own, time: own.time + below });
	}
}

/** A lane: a thread, or several short ones that have one together. */
export interface Lane {
	/** The thread, or the first of several. */
	thread: ThreadRow;
	members: readonly ThreadRow[];
	/** How far it is indented. */
	depth: number;
	/** Several processes of this name. */
	group: string | null;
	/** Each of them has a lane of its own below. */
	open: boolean;
}

/** Processes with a smaller share of all time are shown together when there are so many of a name. */
const SMALL = 0.01;
const TOGETHER = 4;
/** So many processes of a name are shown together whatever their share, but for those with so many times the median. */
const CROWD = 16;
const STANDS_OUT = 4;
const DEEPEST = 4;

/** Lanes for threads in their order: `shown` are those to show, `open` the names that are shown one by one. */
export function lanesOf(
	threads: readonly ThreadRow[],
	shown: (tid: number) => boolean,
	open: ReadonlySet<string>,
	tree: boolean,
): Lane[] {
	const whole = threads.reduce((a, t) => a + t.time_ns, 0);
	const times = new Map<number, number>();
	for (const t of threads) times.set(processOf(t), (times.get(processOf(t)) ?? 0) + t.time_ns);
	const name = (t: ThreadRow) => t.process ?? t.comm ?? "";
	const alike = standsOut(threads, times, name);
	const groups = new Map<string, { processes: Set<number>; members: ThreadRow[] }>();
	for (const t of threads) {
		if ((times.get(processOf(t)) ?? 0) >= Math.max(whole * SMALL, alike.get(name(t)) ?? 0)) continue;
		const group = groups.get(name(t)) ?? { processes: new Set(), members: [] };
		group.processes.add(processOf(t));
		if (shown(t.tid)) group.members.push(t);
		groups.set(name(t), group);
	}
	const grouped = new Map<number, string>();
	for (const [key, { processes }] of groups)
		if (processes.size >= TOGETHER) for (const process of processes) grouped.set(process, key);
	const parents = new Map(threads.map((t) => [processOf(t), t.parent]));
	const lanes: Lane[] = [];
	const said = new Set<string>();
	for (const thread of threads) {
		const group = grouped.get(processOf(thread));
		if (group === undefined) {
			if (!shown(thread.tid)) continue;
			const depth = tree ? depthOf(processOf(thread), parents, grouped) : 0;
			lanes.push({ thread, members: [thread], depth, group: null, open: false });
		} else if (!said.has(group)) {
			said.add(group);
			const members = groups.get(group)?.members ?? [];
			const first = members[0];
			if (!first) continue;
			const isOpen = open.has(group);
			lanes.push({ thread: first, members, depth: 0, group, open: isOpen });
			if (isOpen)
				for (const member of members)
					lanes.push({ thread: member, members: [member], depth: 1, group: null, open: false });
		}
	}
	return lanes;
}

/** Of names that crowds of processes have, such as compilers that `make -j` starts: the time from which on one stands out. */
function standsOut(
	threads: readonly ThreadRow[],
	times: ReadonlyMap<number, number>,
	name: (thread: ThreadRow) => string,
): Map<string, number> {
	const crowds = new Map<string, Set<number>>();
	for (const t of threads) crowds.set(name(t), (crowds.get(name(t)) ?? new Set()).add(processOf(t)));
	const found = new Map<string, number>();
	for (const [key, processes] of crowds) {
		if (processes.size < CROWD) continue;
		const sorted = [...processes].map((process) => times.get(process) ?? 0).sort((a, b) => a - b);
		found.set(key, (sorted[Math.floor(sorted.length / 2)] ?? 0) * STANDS_OUT);
	}
	return found;
}

/** How many processes with lanes of their own are above one. */
function depthOf(
	process: number,
	parents: ReadonlyMap<number, number | null>,
	grouped: ReadonlyMap<number, string>,
): number {
	let depth = 0;
	let at = parents.get(process) ?? null;
	for (let step = 0; at !== null && step < 64 && depth < DEEPEST; step += 1) {
		if (parents.has(at) && !grouped.has(at)) depth += 1;
		at = parents.get(at) ?? null;
	}
	return depth;
}

/** What a lane of several processes is called: `29 short-lived bash`. */
export function groupName(lane: Pick<Lane, "members" | "group">, span: number): string {
	const processes = new Set(lane.members.map(processOf)).size;
	const short = (t: ThreadRow) => t.start !== null && t.end !== null && t.end - t.start < span / 10;
	return `${processes} ${lane.members.every(short) ? "short-lived " : ""}${lane.group ?? ""}`;
}

/** Lanes in a running recording keep their places; threads that are new come below. */
export function keepPlaces(before: readonly ThreadRow[], now: readonly ThreadRow[]): ThreadRow[] {
	const fresh = new Map(now.map((t) => [t.tid, t]));
	const kept: ThreadRow[] = [];
	for (const thread of before) {
		const again = fresh.get(thread.tid);
		if (again) {
			kept.push(again);
			fresh.delete(thread.tid);
		}
	}
	return [...kept, ...fresh.values()];
}

/** Where a thread stands in the tiles: its block, and which lane of that. */
export interface Slot {
	block: number;
	lane: number;
}

/**
 * Threads whose calls come together. A thread stays in the block that it was put into first, however lanes are
 * ordered and whatever threads come and go, so that tiles that were loaded stay of use.
 */
export class Blocks {
	private readonly slots = new Map<number, Slot>();
	private readonly blocks: number[][] = [];

	/** Gives those threads a place that have none, in the order of their lanes. */
	add(threads: readonly ThreadRow[]): void {
		for (const { tid } of threads) {
			if (this.slots.has(tid)) continue;
			let block = this.blocks.length - 1;
			if ((this.blocks[block]?.length ?? BLOCK_LANES) >= BLOCK_LANES) {
				this.blocks.push([]);
				block += 1;
			}
			const tids = this.blocks[block] ?? [];
			this.slots.set(tid, { block, lane: tids.length });
			tids.push(tid);
		}
	}

	/** Grows when a block gets more threads: tiles that were loaded before lack them. */
	version(block: number): number {
		return this.blocks[block]?.length ?? 0;
	}

	of(tid: number): Slot | undefined {
		return this.slots.get(tid);
	}

	threads(block: number): readonly number[] {
		return this.blocks[block] ?? [];
	}
}

/** The first and the last lane on a screen `height` high, scrolled by `scroll`. */
export function visibleLanes(
	lanes: number,
	high: number,
	scroll: number,
	height: number,
): { first: number; last: number } {
	const first = Math.max(0, Math.floor(scroll / high));
	return { first, last: Math.min(lanes - 1, Math.floor((scroll + height) / high)) };
}

/** How high a lane is, and its parts. */
export interface LaneSizes {
	/** The application's spans, at the top; 0 without. */
	spans: number;
	/** The calls below them. */
	calls: number;
	/** The states of the thread below them; 0 without. */
	states: number;
	/** A layer below them. */
	row: number;
	/** All of it. */
	high: number;
}

const LAYER_ROWS = [18, 16, 14, 12] as const;
const CALLS_ABOVE_LAYERS = 32;
/** Between the last layer and the next thread. */
const GAP = 4;
/** The strip with the states of a thread. */
export const STATES_HEIGHT = 14;

/** The strip with the spans of a thread: two in each other have room for their names. */
export const SPANS_HEIGHT = 26;

/** Lanes are as high as fits: few threads leave room for more text. */
export function laneSizes(
	lanes: number,
	height: number,
	layers: number,
	withStates = false,
	withSpans = false,
): LaneSizes {
	const states = withStates ? STATES_HEIGHT : 0;
	const spans = withSpans ? SPANS_HEIGHT : 0;
	const fits = (high: number) => lanes * high + RULER_HEIGHT <= height;
	if (layers === 0) {
		const high = LANE_HEIGHTS.find((calls) => fits(spans + calls + states)) ?? LANE_HEIGHTS[5];
		return { spans, calls: high, states, row: 0, high: spans + high + states };
	}
	const all = (row: number) => spans + CALLS_ABOVE_LAYERS + states + layers * row + GAP;
	const row = LAYER_ROWS.find((r) => fits(all(r))) ?? LAYER_ROWS[3];
	return { spans, calls: CALLS_ABOVE_LAYERS, states, row, high: all(row) };
}
