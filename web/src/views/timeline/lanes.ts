// The lanes: which thread stands where.

import type { ThreadRow } from "../../api/types";
import { BLOCK_LANES } from "./tiles";

const LANE_HEIGHTS = [56, 42, 28] as const;
export const RULER_HEIGHT = 26;

export type Order = "time" | "start" | "name";

interface Weight {
	time: number;
	start: number;
	name: string;
}

const COMPARE: Readonly<Record<Order, (a: Weight, b: Weight) => number>> = {
	time: (a, b) => b.time - a.time,
	start: (a, b) => a.start - b.start || 0,
	name: (a, b) => a.name.localeCompare(b.name),
};

/** Threads in the order of their lanes: those of a process together, the process with the most time first. */
export function orderThreads(threads: readonly ThreadRow[], order: Order): ThreadRow[] {
	const compare = COMPARE[order];
	// Where the process is not known, the thread is one of its own.
	const process = (t: ThreadRow) => t.pid ?? -t.tid;
	const start = (t: ThreadRow) => t.start ?? Number.MAX_VALUE;
	const processes = new Map<number, Weight>();
	for (const thread of threads) {
		const known = processes.get(process(thread));
		if (known) {
			known.time += thread.time_ns;
			known.start = Math.min(known.start, start(thread));
		} else {
			const weight = { time: thread.time_ns, start: start(thread), name: thread.process ?? thread.comm ?? "" };
			processes.set(process(thread), weight);
		}
	}
	const own = (t: ThreadRow): Weight => ({ time: t.time_ns, start: start(t), name: t.comm ?? "" });
	return [...threads].sort((a, b) => {
		const x = processes.get(process(a));
		const y = processes.get(process(b));
		if (x && y && x !== y) return compare(x, y) || process(a) - process(b);
		// The thread that the process began with leads the others.
		const leads = Number(b.tid === b.pid) - Number(a.tid === a.pid);
		return leads || compare(own(a), own(b)) || a.tid - b.tid;
	});
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

/** The threads of a block of lanes. */
export function blockOf(threads: readonly ThreadRow[], block: number): ThreadRow[] {
	return threads.slice(block * BLOCK_LANES, (block + 1) * BLOCK_LANES);
}

/** Lanes are as high as fits: few threads leave room for more text. */
export function laneHeight(lanes: number, height: number): number {
	for (const high of LANE_HEIGHTS) if (lanes * high + RULER_HEIGHT <= height) return high;
	return LANE_HEIGHTS[2];
}

/** The blocks that are on a screen `height` high, scrolled by `scroll`. */
export function visibleBlocks(lanes: number, high: number, scroll: number, height: number): number[] {
	const first = Math.max(0, Math.floor(scroll / high / BLOCK_LANES));
	const last = Math.min(Math.ceil(lanes / BLOCK_LANES) - 1, Math.floor((scroll + height) / high / BLOCK_LANES));
	const blocks: number[] = [];
	for (let b = first; b <= last; b += 1) blocks.push(b);
	return blocks;
}
