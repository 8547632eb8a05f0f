// The lanes: which thread stands where.

import type { ThreadRow } from "../../api/types";
import { BLOCK_LANES } from "./tiles";

const LANE_HEIGHTS = [56, 50, 44, 38, 32, 28] as const;
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
	/** The calls, at the top. */
	calls: number;
	/** A layer below them. */
	row: number;
	/** All of it. */
	high: number;
}

const LAYER_ROWS = [18, 16, 14, 12] as const;
const CALLS_ABOVE_LAYERS = 32;
/** Between the last layer and the next thread. */
const GAP = 4;

/** Lanes are as high as fits: few threads leave room for more text. */
export function laneSizes(lanes: number, height: number, layers: number): LaneSizes {
	const fits = (high: number) => lanes * high + RULER_HEIGHT <= height;
	if (layers === 0) {
		const high = LANE_HEIGHTS.find(fits) ?? LANE_HEIGHTS[5];
		return { calls: high, row: 0, high };
	}
	const all = (row: number) => CALLS_ABOVE_LAYERS + layers * row + GAP;
	const row = LAYER_ROWS.find((r) => fits(all(r))) ?? LAYER_ROWS[3];
	return { calls: CALLS_ABOVE_LAYERS, row, high: all(row) };
}
