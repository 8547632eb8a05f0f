// What lies below the pointer.

import type { ThreadRow } from "../../api/types";
import { toPixel, toTime } from "../../lib/scale";
import type { Calls, TileData } from "./decode";
import { type Lane, RULER_HEIGHT } from "./lanes";
import { callBox, laneTop, NAME_WIDTH, type Scene, shownTile } from "./paint";
import { spanAt } from "./paintspans";
import type { SpanBar } from "./spans";
import { type States, shareAt } from "./states";
import { tileSpan, tilesIn } from "./tiles";

export interface CallHit {
	kind: "call";
	thread: ThreadRow;
	rid: number;
	t: number;
	dur: number;
	syscall: string;
	errno: string | null;
	bytes: number;
	label: string | null;
}

export interface SumHit {
	kind: "sum";
	thread: ThreadRow;
	t: number;
	bucket: number;
	calls: number;
	errors: number;
	time: number;
	max: number;
	bytes: number;
}

export interface LaneHit {
	kind: "lane";
	thread: ThreadRow;
	lane: Lane;
}

/** A visit of a layer below a call. */
export interface VisitHit {
	kind: "visit";
	thread: ThreadRow;
	layer: string;
	name: string;
	rid: number;
	t: number;
	dur: number;
	self: number;
}

/** A layer's own time in a bucket. */
export interface LayerHit {
	kind: "layer";
	thread: ThreadRow;
	layer: string;
	t: number;
	bucket: number;
	visits: number;
	time: number;
}

/** A period of a thread, or its time by state in a bucket. */
export interface StateHit {
	kind: "state";
	thread: ThreadRow;
	states: States;
	/** A row of them; null of a bucket. */
	row: number | null;
	t: number;
	parts: readonly (readonly [string, number])[];
}

/** A span of the application. */
export interface SpanHit {
	kind: "span";
	thread: ThreadRow;
	span: SpanBar;
}

export type Hit = CallHit | SumHit | LaneHit | VisitHit | LayerHit | StateHit | SpanHit;

/** A call this far from the pointer is still meant: many are narrower than a pixel. */
const REACH = 4;

export function laneAt(scene: Scene, y: number): number {
	return y < RULER_HEIGHT ? -1 : Math.floor((y - RULER_HEIGHT + scene.scroll) / scene.sizes.high);
}

export function hitAt(scene: Scene, x: number, y: number): Hit | null {
	const lane = laneAt(scene, y);
	const row = scene.rows[lane];
	if (!row) return null;
	if (x < NAME_WIDTH) return { kind: "lane", thread: row.thread, lane: row };
	for (const thread of row.members) {
		const hit = hitIn(scene, thread, lane, x, y);
		if (hit) return hit;
	}
	return null;
}

/** What lies below the pointer of one of the threads of a lane. */
function hitIn(scene: Scene, thread: ThreadRow, lane: number, x: number, y: number): Hit | null {
	const width = scene.width - NAME_WIDTH;
	const t = toTime(x - NAME_WIDTH, scene.span, width);
	const top = laneTop(scene, lane);
	if (y < top) {
		const span = spanAt(scene, thread.tid, lane, x, y);
		return span && { kind: "span", thread, span };
	}
	const below = y - top - scene.sizes.calls;
	if (scene.sizes.states > 0 && below >= 0 && below < scene.sizes.states) {
		// Several threads that share a lane share the height of its strip.
		const known = scene.rows[lane]?.members.filter(({ tid }) => scene.states?.threads.has(tid)) ?? [];
		const own = known[Math.min(known.length - 1, Math.floor((below / (scene.sizes.states - 3)) * known.length))];
		const found = scene.states && own === thread ? shareAt(scene.states, thread.tid, t) : null;
		return found && scene.states ? { kind: "state", thread, states: scene.states, t, ...found } : null;
	}
	const under = below - scene.sizes.states;
	if (scene.layers.length > 0 && under >= 0) {
		const layer = scene.layers[Math.floor(under / scene.sizes.row)];
		return layer === undefined ? null : layerHit(scene, thread, layer, t);
	}
	const slot = scene.places.of(thread.tid);
	const id = slot ? tilesIn({ from: t, to: t + 1e-3 }, scene.level, slot.block, scene.start)[0] : undefined;
	const shown = id ? shownTile(scene.tiles, id) : null;
	const part = shown?.data.lanes.get(thread.tid);
	if (!shown || !part) return null;
	if (part.calls) return nearestCall(scene, part.calls, shown.data, thread, lane, x, y);
	const density = part.density;
	if (!density) return null;
	const from = tileSpan(shown.id, scene.start).from;
	const place = Math.floor((t - from) / shown.data.bucket);
	if (place < 0 || place >= shown.data.buckets) return null;
	const sum: SumHit = {
		kind: "sum",
		thread,
		t: from + place * shown.data.bucket,
		bucket: shown.data.bucket,
		calls: density.calls[place] ?? 0,
		errors: density.errors[place] ?? 0,
		time: density.time[place] ?? 0,
		max: density.max[place] ?? 0,
		bytes: density.bytes[place] ?? 0,
	};
	return sum.calls > 0 || sum.time > 0 ? sum : null;
}

function layerHit(scene: Scene, thread: ThreadRow, layer: string, t: number): VisitHit | LayerHit | null {
	const { below } = scene;
	const row = below?.threads.get(thread.tid)?.get(layer);
	if (!below || !row) return null;
	if (row.sums) {
		const place = Math.floor((t - below.from) / below.bucket);
		const time = row.sums.time[place] ?? 0;
		if (time <= 0) return null;
		const visits = row.sums.visits[place] ?? 0;
		return { kind: "layer", thread, layer, t: below.from + place * below.bucket, bucket: below.bucket, visits, time };
	}
	const visits = row.visits;
	if (!visits) return null;
	const reach = ((scene.span.to - scene.span.from) / (scene.width - NAME_WIDTH)) * REACH;
	let best = -1;
	let least = reach;
	for (let i = 0; i < visits.length; i += 1) {
		const begin = visits.t[i] ?? 0;
		if (begin - reach > t) break;
		const end = begin + (visits.dur[i] ?? 0);
		const distance = t < begin ? begin - t : t > end ? t - end : 0;
		// Of those that lie in each other the innermost, which is drawn last.
		if (distance <= least) {
			least = distance;
			best = i;
		}
	}
	if (best < 0) return null;
	return {
		kind: "visit",
		thread,
		layer,
		name: visits.name[best] ?? "",
		rid: visits.rid[best] ?? 0,
		t: visits.t[best] ?? 0,
		dur: visits.dur[best] ?? 0,
		self: visits.self[best] ?? 0,
	};
}

function nearestCall(
	scene: Scene,
	calls: Calls,
	data: TileData,
	thread: ThreadRow,
	lane: number,
	x: number,
	y: number,
): CallHit | null {
	const width = scene.width - NAME_WIDTH;
	const at = (t: number) => NAME_WIDTH + toPixel(t, scene.span, width);
	let best = -1;
	let least = REACH;
	for (let i = 0; i < calls.length; i += 1) {
		const t = calls.t[i] ?? 0;
		const left = at(t);
		if (left - REACH > x) break;
		const right = at(t + (calls.dur[i] ?? 0));
		const box = callBox(scene, lane, calls.depth[i] ?? 0, calls.deepest);
		const beside = x < left ? left - x : x > right ? x - right : 0;
		const above =
			calls.deepest > 0 ? (y < box.top ? box.top - y : y > box.top + box.height ? y - box.top - box.height : 0) : 0;
		const distance = Math.max(beside, above);
		if (distance <= least) {
			least = distance;
			best = i;
		}
	}
	if (best < 0) return null;
	return {
		kind: "call",
		thread,
		rid: calls.rid[best] ?? 0,
		t: calls.t[best] ?? 0,
		dur: calls.dur[best] ?? 0,
		syscall: data.syscalls[calls.syscall[best] ?? -1] ?? "",
		errno: data.errnos[calls.errno[best] ?? -1] ?? null,
		bytes: calls.bytes[best] ?? Number.NaN,
		label: calls.label[best] ?? null,
	};
}

/** The longest call that is drawn as one and takes place in sight; null when there is none. */
export function longestInSight(scene: Scene): number | null {
	let rid: number | null = null;
	let longest = -1;
	for (const block of scene.blocks) {
		for (const id of tilesIn(scene.span, scene.level, block, scene.start)) {
			const shown = shownTile(scene.tiles, id);
			for (let lane = scene.lanes.first; lane <= scene.lanes.last; lane += 1) {
				for (const { tid } of scene.rows[lane]?.members ?? []) {
					const calls = shown?.data.lanes.get(tid)?.calls;
					if (!calls) continue;
					for (let i = 0; i < calls.length; i += 1) {
						const t = calls.t[i] ?? 0;
						const dur = calls.dur[i] ?? 0;
						if (t > scene.span.to) break;
						if (t + dur < scene.span.from || dur <= longest) continue;
						longest = dur;
						rid = calls.rid[i] ?? null;
					}
				}
			}
		}
	}
	return rid;
}
