// Tiles of the timeline: which there are, which are wanted, and a cache that loads them in the order of need.

import type { Span } from "../../lib/scale";
import { powerOfTwo } from "../../lib/scale";

/** Buckets in a tile. */
export const TILE_BUCKETS = 512;
/** A bucket is drawn this wide or up to twice as wide. */
const BUCKET_PIXELS = 2;
/** Threads whose calls come in one request. */
export const BLOCK_LANES = 16;

/** Width of a bucket as a power of two of nanoseconds. */
export type Level = number;

/**
 * One tile: `index` counts tiles of its level from time 0 of the clock, so that buckets fall on those of the server,
 * which are aligned to the clock and not to the session.
 */
export interface TileId {
	level: Level;
	index: number;
	block: number;
}

export function tileKey(id: TileId): string {
	return `${id.block}/${id.level}/${id.index}`;
}

/** The level whose buckets are at least two pixels wide in a window drawn `width` pixels wide. */
export function levelFor(span: Span, width: number): Level {
	const bucket = ((span.to - span.from) / Math.max(width, 1)) * BUCKET_PIXELS;
	return Math.round(Math.log2(powerOfTwo(bucket)));
}

/** The time that a tile covers, since the session's start, which is `start` on the clock. */
export function tileSpan(id: TileId, start: number): Span {
	const width = TILE_BUCKETS * 2 ** id.level;
	return { from: id.index * width - start, to: (id.index + 1) * width - start };
}

/** The tiles of a level that a window touches. */
export function tilesIn(span: Span, level: Level, block: number, start: number): TileId[] {
	const width = TILE_BUCKETS * 2 ** level;
	const first = Math.floor((span.from + start) / width);
	const last = Math.max(first, Math.ceil((span.to + start) / width) - 1);
	const ids: TileId[] = [];
	for (let index = first; index <= last; index += 1) ids.push({ level, index, block });
	return ids;
}

/** The tile of a coarser level that holds a tile. */
export function ancestor(id: TileId, up: number): TileId {
	return { level: id.level + up, index: Math.floor(id.index / 2 ** up), block: id.block };
}

/** What a cache keeps of a tile. */
export interface Loaded<T> {
	data: T;
	/** The state of the recording that it shows; it is loaded anew when that has changed. */
	revision: number;
}

interface Job {
	controller: AbortController;
	revision: number;
}

interface Options<T> {
	load: (id: TileId, signal: AbortSignal) => Promise<T>;
	/** A tile is there: draw again. */
	arrived: (id: TileId) => void;
	failed: (error: unknown) => void;
	/** Tiles that are kept. */
	capacity: number;
	/** Requests at the same time. */
	parallel: number;
}

/** Tiles that were loaded, and those that are on their way. */
export class TileCache<T> {
	/** In the order of their last use, the longest ago first. */
	private readonly tiles = new Map<string, Loaded<T>>();
	private readonly jobs = new Map<string, Job>();
	private queue: { id: TileId; key: string; revision: number }[] = [];
	private resting = false;

	constructor(private readonly options: Options<T>) {}

	/** A tile, if it is there; it counts as used. */
	get(id: TileId): Loaded<T> | undefined {
		const key = tileKey(id);
		const tile = this.tiles.get(key);
		if (tile) {
			this.tiles.delete(key);
			this.tiles.set(key, tile);
		}
		return tile;
	}

	has(id: TileId): boolean {
		return this.tiles.has(tileKey(id));
	}

	/**
	 * What is wanted now, the most urgent first; `revision` tells what a tile must show at least. Loads that nobody
	 * wants any more are cancelled.
	 */
	want(ids: readonly TileId[], revision: (id: TileId) => number): void {
		const queue: { id: TileId; key: string; revision: number }[] = [];
		const wanted = new Set<string>();
		for (const id of ids) {
			const key = tileKey(id);
			if (wanted.has(key)) continue;
			wanted.add(key);
			const needed = revision(id);
			const tile = this.tiles.get(key);
			if (tile && tile.revision >= needed) continue;
			if (this.jobs.has(key)) continue;
			queue.push({ id, key, revision: needed });
		}
		for (const [key, job] of this.jobs) {
			if (!wanted.has(key)) {
				job.controller.abort();
				this.jobs.delete(key);
			}
		}
		this.queue = queue;
		this.start();
	}

	/** Cancels everything and forgets all tiles. */
	clear(): void {
		for (const job of this.jobs.values()) job.controller.abort();
		this.jobs.clear();
		this.queue = [];
		this.tiles.clear();
	}

	/** Nothing is on its way. */
	idle(): boolean {
		return this.jobs.size === 0 && this.queue.length === 0;
	}

	/** After a failure: no request until this is called. */
	resume(): void {
		this.resting = false;
	}

	private start(): void {
		while (!this.resting && this.jobs.size < this.options.parallel) {
			const next = this.queue.shift();
			if (!next) return;
			void this.load(next.id, next.key, next.revision);
		}
	}

	private async load(id: TileId, key: string, revision: number): Promise<void> {
		const job: Job = { controller: new AbortController(), revision };
		this.jobs.set(key, job);
		try {
			const data = await this.options.load(id, job.controller.signal);
			if (job.controller.signal.aborted) return;
			this.jobs.delete(key);
			this.tiles.delete(key);
			this.tiles.set(key, { data, revision });
			this.evict();
			this.options.arrived(id);
		} catch (error) {
			if (job.controller.signal.aborted) return;
			this.jobs.delete(key);
			this.resting = true;
			this.options.failed(error);
		}
		this.start();
	}

	private evict(): void {
		for (const key of this.tiles.keys()) {
			if (this.tiles.size <= this.options.capacity) return;
			this.tiles.delete(key);
		}
	}
}

/**
 * The order in which tiles are wanted: what is on the screen, first those in the middle and at its edges, which would be
 * blank else, then from the middle outwards; then beside it, so that panning finds them, then one level out, so that
 * zooming does.
 */
export function wantedTiles(
	span: Span,
	bounds: Span,
	level: Level,
	blocks: readonly number[],
	start: number,
	needless: (id: TileId) => boolean,
): { seen: TileId[]; ahead: TileId[] } {
	const width = TILE_BUCKETS * 2 ** level;
	const center = (span.from + span.to) / 2 + start;
	const near = (id: TileId) => Math.abs((id.index + 0.5) * width - center);
	const inside = (id: TileId) => {
		const { from, to } = tileSpan(id, start);
		return to > bounds.from && from < bounds.to;
	};
	const seen: TileId[] = [];
	const edges = new Set<number>();
	const beside: TileId[] = [];
	const above: TileId[] = [];
	for (const block of blocks) {
		const here = tilesIn(span, level, block, start);
		seen.push(...here);
		const first = here[0];
		const last = here.at(-1);
		for (const edge of [first, last]) if (edge) edges.add(edge.index);
		if (first) beside.push({ ...first, index: first.index - 1 });
		if (last) beside.push({ ...last, index: last.index + 1 });
		above.push(...tilesIn(span, level + 1, block, start));
	}
	const urgent = (id: TileId) => Number(edges.has(id.index) || near(id) <= width / 2);
	seen.sort((a, b) => urgent(b) - urgent(a) || near(a) - near(b));
	const wanted = (id: TileId) => inside(id) && !needless(id);
	return { seen: seen.filter(wanted), ahead: [...beside, ...above].filter(wanted) };
}
