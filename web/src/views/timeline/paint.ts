// Draws the timeline: a lane per thread, sums where calls are too many, single calls where they fit.

import { colorOf, durationShare, rampRgb, type Theme } from "../../lib/color";
import { duration, shortPath, time, visible } from "../../lib/format";
import { type Span, ticks, timeStep, toPixel } from "../../lib/scale";
import { token } from "../../state/theme";
import type { Calls, Density, LanePart, TileData } from "./decode";
import { type Blocks, groupName, type Lane, type LaneSizes, RULER_HEIGHT } from "./lanes";
import type { Below } from "./layers";
import { paintLayerNames, paintLayers } from "./paintlayers";
import { paintSpans } from "./paintspans";
import { paintStates } from "./paintstates";
import type { ThreadSpans } from "./spans";
import type { States } from "./states";
import { ancestor, BLOCK_LANES, type Level, type TileCache, type TileId, tileKey, tileSpan, tilesIn } from "./tiles";

/** Room for the names of threads. */
export const NAME_WIDTH = 216;
const PAD = 4;
/** How far a lane is indented below that of its process, or of the process that started it. */
const INDENT = 8;
/** How far up a tile that is missing is looked for. */
const FURTHEST = 40;

/** A call's duration, or its kind: sums, which are of calls of all kinds, are gray then. */
export type ColorBy = "duration" | "kind";

export interface Scene {
	context: CanvasRenderingContext2D;
	width: number;
	height: number;
	ratio: number;
	theme: Theme;
	colors: Palette;
	span: Span;
	bounds: Span;
	level: Level;
	/** The session's start on the clock. */
	start: number;
	rows: readonly Lane[];
	scroll: number;
	/** How high a lane and its parts are. */
	sizes: LaneSizes;
	/** The lanes on the screen, and the blocks that their calls come in. */
	lanes: { first: number; last: number };
	blocks: readonly number[];
	places: Blocks;
	tiles: TileCache<TileData>;
	pictures: Pictures;
	selected: number | null;
	hovered: number | null;
	/** The layers that have a row below each thread's calls, and what is in those rows. */
	layers: readonly string[];
	below: Below | null;
	/** The states of the threads; null while they are not there. */
	states: States | null;
	/** The application's spans; null while they are not there. */
	spans: ThreadSpans | null;
	/** The wait below the pointer, as a row of them. */
	pointed: number | null;
	/** What the color of a call means. */
	by: ColorBy;
	/** What is being selected with the mouse. */
	marked: Span | null;
}

/** Colors of the style sheet, read once a theme. */
export interface Palette {
	ground: string;
	surface: string;
	line: string;
	lineStrong: string;
	ink: string;
	ink2: string;
	ink3: string;
	accent: string;
	font: string;
}

export function palette(): Palette {
	return {
		ground: token("--ground"),
		surface: token("--surface"),
		line: token("--grid"),
		lineStrong: token("--line-strong"),
		ink: token("--ink"),
		ink2: token("--ink-2"),
		ink3: token("--ink-3"),
		accent: token("--accent"),
		font: token("--font"),
	};
}

/** The tile that is shown at a place: the wanted one, or the nearest that is there. */
export function shownTile(tiles: TileCache<TileData>, id: TileId): { id: TileId; data: TileData } | null {
	const own = tiles.get(id);
	if (own) return { id, data: own.data };
	for (let up = 1; up <= FURTHEST; up += 1) {
		const above = ancestor(id, up);
		const tile = tiles.get(above);
		if (tile) return { id: above, data: tile.data };
	}
	return null;
}

/** The tile at a place is there with every call one by one, at this level or a coarser one. */
export function completeAt(tiles: TileCache<TileData>, id: TileId): boolean {
	for (let up = 1; up <= FURTHEST; up += 1) {
		const tile = tiles.get(ancestor(id, up));
		if (tile?.data.complete) return true;
	}
	return false;
}

/** Whether a place is drawn from something coarser than what was asked for, or not at all. */
export function isMissing(tiles: TileCache<TileData>, id: TileId): boolean {
	return !tiles.has(id) && !completeAt(tiles, id);
}

const HATCH = 8;

/** Marks a part of a row as not loaded yet: without marks it would look as if nothing took place there. */
export function hatch(scene: Scene, left: number, right: number, top: number, height: number): void {
	const { context, colors } = scene;
	const from = Math.max(NAME_WIDTH, left);
	const to = Math.min(scene.width, right);
	if (to <= from || top > scene.height || top + height < 0) return;
	context.save();
	context.beginPath();
	context.rect(from, top, to - from, height);
	context.clip();
	context.strokeStyle = colors.lineStrong;
	context.lineWidth = 1;
	context.beginPath();
	// From one grid of strokes for the whole board, so that rows beside each other fit.
	const first = Math.floor((from + top) / HATCH) * HATCH;
	for (let at = first; at < to + top + height; at += HATCH) {
		context.moveTo(at - top, top);
		context.lineTo(at - top - height, top + height);
	}
	context.stroke();
	context.restore();
}

/** What of a call that began before a tile is left at its begin, as far as coarser tiles tell. */
function carriedInto(scene: Scene, id: TileId, tid: number): number {
	const from = tileSpan(id, scene.start).from;
	let most = 0;
	for (let up = 1; up <= FURTHEST; up += 1) {
		const above = ancestor(id, up);
		const tile = scene.tiles.get(above);
		const density = tile?.data.lanes.get(tid)?.density;
		if (!tile || !density) continue;
		const span = tileSpan(above, scene.start);
		const bucket = tile.data.bucket;
		const place = Math.floor((from - span.from) / bucket + 1e-9);
		const offset = from - span.from - place * bucket;
		most = Math.max(most, (density.carried[place] ?? 0) - offset);
	}
	return most;
}

export function paint(scene: Scene): void {
	const { context, width, height, colors } = scene;
	context.setTransform(scene.ratio, 0, 0, scene.ratio, 0, 0);
	context.fillStyle = colors.surface;
	context.fillRect(0, 0, width, height);
	const step = timeStep(scene.span, (width - NAME_WIDTH) / 140);
	const marks = ticks(scene.span, step);
	context.save();
	context.beginPath();
	context.rect(NAME_WIDTH, RULER_HEIGHT, width - NAME_WIDTH, height - RULER_HEIGHT);
	context.clip();
	paintGrid(scene, marks);
	for (const block of scene.blocks) paintBlock(scene, block);
	paintSpans(scene);
	paintStates(scene);
	paintLayers(scene);
	paintOverlay(scene);
	context.restore();
	paintNames(scene);
	paintRuler(scene, marks, step);
}

/** Where a time stands. */
export function timeX(scene: Scene, t: number): number {
	return NAME_WIDTH + toPixel(t, scene.span, scene.width - NAME_WIDTH);
}

/** Where a lane begins. */
export function laneEdge(scene: Scene, lane: number): number {
	return RULER_HEIGHT + lane * scene.sizes.high - scene.scroll;
}

/** Where the calls of a lane begin. */
export function laneTop(scene: Scene, lane: number): number {
	return laneEdge(scene, lane) + scene.sizes.spans;
}

function paintGrid(scene: Scene, marks: readonly number[]): void {
	const { context, colors } = scene;
	context.fillStyle = colors.line;
	for (const t of marks) context.fillRect(Math.round(timeX(scene, t)), RULER_HEIGHT, 1, scene.height);
	for (let lane = scene.lanes.first; lane <= scene.lanes.last + 1; lane += 1) {
		const top = laneEdge(scene, lane);
		const between = lane > 0 && scene.rows[lane]?.thread.pid !== scene.rows[lane - 1]?.thread.pid;
		context.globalAlpha = between ? 1 : 0.5;
		context.fillStyle = colors.line;
		context.fillRect(NAME_WIDTH, Math.round(top), scene.width, 1);
		context.globalAlpha = 1;
	}
}

function paintBlock(scene: Scene, block: number): void {
	const lanes: { lane: number; slot: number; tid: number }[] = [];
	for (let lane = scene.lanes.first; lane <= scene.lanes.last; lane += 1) {
		for (const { tid } of scene.rows[lane]?.members ?? []) {
			const slot = scene.places.of(tid);
			if (slot?.block === block) lanes.push({ lane, slot: slot.lane, tid });
		}
	}
	const drawn = new Set<string>();
	const singles: { part: Calls; data: TileData; lane: number; from: Span }[] = [];
	for (const id of tilesIn(scene.span, scene.level, block, scene.start)) {
		const shown = shownTile(scene.tiles, id);
		if (!shown) {
			const { from, to } = tileSpan(id, scene.start);
			for (const { lane } of lanes)
				hatch(scene, timeX(scene, from), timeX(scene, to), laneTop(scene, lane) + PAD, scene.sizes.calls - 2 * PAD);
			continue;
		}
		// Of a coarser tile only the part that stands for this one, so that nothing is drawn twice.
		const clip = tileSpan(id, scene.start);
		const picture = scene.pictures.of(scene, shown);
		if (picture)
			for (const { lane, slot } of lanes) drawSlice(scene, shown.id, picture, slot, clip, laneTop(scene, lane));
		const key = tileKey(shown.id);
		if (drawn.has(key)) continue;
		drawn.add(key);
		const own = tileSpan(shown.id, scene.start);
		for (const { lane, tid } of lanes) {
			const part = shown.data.lanes.get(tid);
			if (part?.calls) singles.push({ part: part.calls, data: shown.data, lane, from: own });
		}
	}
	const crossing = new Set<number>();
	for (const single of singles) paintCalls(scene, single.part, single.data, single.lane, single.from, crossing);
}

/** One lane of the picture of a block, in which a bucket is one pixel wide: stretched in time only. */
function drawSlice(scene: Scene, id: TileId, picture: HTMLCanvasElement, slot: number, clip: Span, top: number): void {
	const own = tileSpan(id, scene.start);
	const width = own.to - own.from;
	const sx = ((clip.from - own.from) / width) * picture.width;
	const sw = ((clip.to - clip.from) / width) * picture.width;
	const left = timeX(scene, clip.from);
	const right = timeX(scene, clip.to);
	const tall = picture.height / BLOCK_LANES;
	scene.context.imageSmoothingEnabled = false;
	scene.context.drawImage(picture, sx, slot * tall, sw, tall, left, top, right - left, scene.sizes.calls);
}

/** Pictures of tiles, kept while they are used. */
export class Pictures {
	private readonly kept = new Map<string, { data: TileData; picture: HTMLCanvasElement | null }>();

	constructor(private readonly capacity: number) {}

	/** Null when the tile has no sums to draw. */
	of(scene: Scene, tile: { id: TileId; data: TileData }): HTMLCanvasElement | null {
		const key = `${tileKey(tile.id)} ${scene.theme} ${scene.ratio} ${scene.sizes.calls} ${scene.by}`;
		const known = this.kept.get(key);
		if (known && known.data === tile.data) {
			this.kept.delete(key);
			this.kept.set(key, known);
			return known.picture;
		}
		const picture = drawTile(scene, tile);
		this.kept.delete(key);
		this.kept.set(key, { data: tile.data, picture });
		for (const oldest of this.kept.keys()) {
			if (this.kept.size <= this.capacity) break;
			this.kept.delete(oldest);
		}
		return picture;
	}

	clear(): void {
		this.kept.clear();
	}
}

function rgba([r, g, b]: readonly [number, number, number]): number {
	return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/** Calls that returned an error: most look for something that is not there, so that the mark is no alarm. */
export const RETURNED_ERROR: Readonly<Record<Theme, readonly [number, number, number]>> = {
	dark: [178, 188, 200],
	light: [96, 106, 120],
};

/** Sums, where color means the kind of a call. */
export const NEUTRAL: Readonly<Record<Theme, readonly [number, number, number]>> = {
	dark: [110, 122, 138],
	light: [150, 160, 172],
};

/** The color of a duration: that of a call, or of the longest of several. */
export function durationRgb(ns: number, theme: Theme): readonly [number, number, number] {
	return rampRgb(0.22 + 0.78 * durationShare(ns), theme);
}

/** Dark or white: what can be read on a color. */
function inkOn([r, g, b]: readonly [number, number, number]): string {
	return 0.299 * r + 0.587 * g + 0.114 * b > 120 ? "#07111a" : "#ffffff";
}

function drawTile(scene: Scene, tile: { id: TileId; data: TileData }): HTMLCanvasElement | null {
	const { ratio, theme } = scene;
	const rows = BLOCK_LANES * Math.round(scene.sizes.calls * ratio);
	const tids = scene.places.threads(tile.id.block);
	let pixels: ImageData | null = null;
	for (let i = 0; i < BLOCK_LANES; i += 1) {
		const tid = tids[i];
		if (tid === undefined) continue;
		const part = tile.data.lanes.get(tid);
		const carried = part?.calls ? 0 : carriedInto(scene, tile.id, tid);
		if (!part?.density && carried <= 0) continue;
		pixels ??= new ImageData(tile.data.buckets, rows);
		drawLane(pixels, i, scene.sizes.calls, part, carried, tile.data.bucket, ratio, theme, scene.by);
	}
	if (!pixels) return null;
	const picture = document.createElement("canvas");
	picture.width = tile.data.buckets;
	picture.height = rows;
	picture.getContext("2d")?.putImageData(pixels, 0, 0);
	return picture;
}

/** Height: the share of time in calls. Color: the longest call. A mark on top: errors. */
function drawLane(
	pixels: ImageData,
	lane: number,
	high: number,
	part: LanePart | undefined,
	carried: number,
	bucket: number,
	ratio: number,
	theme: Theme,
	by: ColorBy,
): void {
	const out = new Uint32Array(pixels.data.buffer);
	const top = lane * Math.round(high * ratio) + Math.round(PAD * ratio);
	const tall = Math.round((high - 2 * PAD) * ratio);
	const least = Math.max(1, Math.round(2 * ratio));
	const mark = Math.max(2, Math.round(3 * ratio));
	const returned = rgba(RETURNED_ERROR[theme]);
	const density: Density | null = part?.density ?? null;
	let left = carried;
	let longest = carried;
	for (let i = 0; i < pixels.width; i += 1) {
		const calls = density?.calls[i] ?? 0;
		const busy = Math.min(1, ((density?.time[i] ?? 0) + Math.max(0, left)) / bucket);
		left -= bucket;
		if (calls === 0 && busy <= 0) continue;
		const max = density?.max[i] ?? 0;
		// A call that goes on keeps its color.
		longest = max > 0 ? max : Math.max(longest, (density?.carried[i] ?? 0) + bucket);
		const color = rgba(by === "kind" ? NEUTRAL[theme] : durationRgb(longest, theme));
		const up = Math.max(least, Math.round(busy * tall));
		for (let y = top + tall - up; y < top + tall; y += 1) out[y * pixels.width + i] = color;
		if ((density?.errors[i] ?? 0) > 0) for (let y = top; y < top + mark; y += 1) out[y * pixels.width + i] = returned;
	}
}

/** Where a call of a lane with operations below each other stands. */
export function callBox(scene: Scene, lane: number, depth: number, deepest: number): { top: number; height: number } {
	const rows = Math.min(deepest, 9) + 1;
	const height = (scene.sizes.calls - 2 * PAD) / rows;
	return {
		top: laneTop(scene, lane) + PAD + Math.min(depth, 9) * height,
		height: Math.max(1, height - (rows > 1 ? 0.5 : 0)),
	};
}

const FONT = 11;
/** Text is drawn in boxes at least this wide. */
const TEXT_FROM = 26;
/** Width of a character, about: measured text would cost more than drawing. */
const CHARACTER = 6.3;

function paintCalls(scene: Scene, calls: Calls, data: TileData, lane: number, own: Span, crossing: Set<number>): void {
	const { context, theme, span } = scene;
	const deepest = calls.deepest;
	const right = scene.width;
	context.font = `${FONT}px ${scene.colors.font}`;
	context.textBaseline = "middle";
	for (let i = 0; i < calls.length; i += 1) {
		const t = calls.t[i] ?? 0;
		const dur = calls.dur[i] ?? 0;
		if (t > span.to) break;
		if (t + dur < span.from) continue;
		const rid = calls.rid[i] ?? -1;
		// A call across the border of two tiles is in both.
		if (t < own.from || t + dur > own.to) {
			if (crossing.has(rid)) continue;
			crossing.add(rid);
		}
		const { top, height } = callBox(scene, lane, calls.depth[i] ?? 0, deepest);
		if (top > scene.height || top + height < 0) continue;
		const left = Math.max(NAME_WIDTH - 2, timeX(scene, t));
		const end = Math.min(right + 2, timeX(scene, t + dur));
		const wide = Math.max(1, end - left);
		const name = data.syscalls[calls.syscall[i] ?? -1] ?? "";
		const failed = (calls.errno[i] ?? -1) >= 0;
		const shade = durationRgb(dur, theme);
		context.fillStyle = scene.by === "kind" ? colorOf("syscall", name, theme) : `rgb(${shade.join(" ")})`;
		context.fillRect(left, top, wide > 4 ? wide - 0.5 : wide, height);
		if (failed) {
			context.fillStyle = `rgb(${RETURNED_ERROR[theme].join(" ")})`;
			context.fillRect(left, top, Math.max(wide, 2), 3);
		}
		if (rid === scene.selected || rid === scene.hovered) {
			context.strokeStyle = rid === scene.selected ? scene.colors.ink : scene.colors.ink2;
			context.lineWidth = rid === scene.selected ? 2 : 1;
			context.strokeRect(left - 0.5, top - 0.5, Math.max(wide, 3) + 1, height + 1);
		}
		context.fillStyle = scene.by === "kind" ? (theme === "dark" ? "#07111a" : "#ffffff") : inkOn(shade);
		if (wide >= TEXT_FROM && height >= 11) paintText(scene, calls, i, name, data, left, top, wide, height);
	}
}

function paintText(
	scene: Scene,
	calls: Calls,
	i: number,
	name: string,
	data: TileData,
	left: number,
	top: number,
	wide: number,
	height: number,
): void {
	const { context } = scene;
	const room = Math.floor((wide - 8) / CHARACTER);
	const errno = data.errnos[calls.errno[i] ?? -1];
	const head = errno ? `${name} ${errno}` : name;
	const label = calls.label[i] ?? "";
	const took = duration(calls.dur[i] ?? 0);
	if (height >= 30 && label && room >= 9) {
		const first = head.length + took.length + 2 <= room ? `${head}  ${took}` : fitted(head, room);
		context.fillText(first, left + 4, top + height / 2 - 6.5);
		context.fillText(shortPath(label, Math.min(room, 160)), left + 4, top + height / 2 + 7.5);
		return;
	}
	let text = fitted(head, room);
	const rest = room - text.length - 2;
	if (rest >= took.length) {
		const space = rest - took.length - 2;
		text += label && space >= 8 ? `  ${shortPath(label, Math.min(space, 120))}  ${took}` : `  ${took}`;
	}
	if (text) context.fillText(text, left + 4, top + height / 2 + 0.5);
}

export function fitted(text: string, room: number): string {
	if (text.length <= room) return text;
	return room >= 3 ? `${text.slice(0, room - 1)}…` : "";
}

function paintOverlay(scene: Scene): void {
	const { context, colors } = scene;
	// What lies beyond the session is no idle time.
	context.fillStyle = colors.ground;
	const begin = timeX(scene, scene.bounds.from);
	const end = timeX(scene, scene.bounds.to);
	if (begin > NAME_WIDTH) context.fillRect(NAME_WIDTH, 0, begin - NAME_WIDTH, scene.height);
	if (end < scene.width) context.fillRect(end, 0, scene.width - end, scene.height);
	if (scene.marked) {
		const left = timeX(scene, scene.marked.from);
		const right = timeX(scene, scene.marked.to);
		context.globalAlpha = 0.16;
		context.fillStyle = colors.accent;
		context.fillRect(left, 0, right - left, scene.height);
		context.globalAlpha = 1;
		context.fillRect(left, 0, 1, scene.height);
		context.fillRect(right, 0, 1, scene.height);
	}
}

function paintNames(scene: Scene): void {
	const { context, colors } = scene;
	context.fillStyle = colors.surface;
	context.fillRect(0, RULER_HEIGHT, NAME_WIDTH, scene.height);
	context.textBaseline = "middle";
	for (let lane = scene.lanes.first; lane <= scene.lanes.last; lane += 1) {
		const row = scene.rows[lane];
		if (!row) continue;
		const { thread } = row;
		const top = laneTop(scene, lane);
		const between = lane > 0 && thread.pid !== scene.rows[lane - 1]?.thread.pid;
		context.fillStyle = colors.line;
		if (between) context.fillRect(0, Math.round(laneEdge(scene, lane)), NAME_WIDTH, 1);
		const middle = top + scene.sizes.calls / 2 + 0.5;
		const main = thread.pid === thread.tid || thread.pid === null || row.group !== null;
		const left = 8 + row.depth * INDENT + (main ? 0 : INDENT);
		context.fillStyle = colorOf("comm", row.group ?? thread.comm ?? "", scene.theme);
		context.fillRect(left, middle - 6, 3, 12);
		context.font = `${main ? "600 " : ""}12px ${colors.font}`;
		context.fillStyle = main ? colors.ink : colors.ink2;
		const whole = scene.bounds.to - scene.bounds.from;
		const name = row.group === null ? (thread.comm ?? "thread") : groupName(row, whole);
		const sign = row.group === null ? "" : row.open ? "▾ " : "▸ ";
		const room = NAME_WIDTH - left - 9 - 60;
		// Threads of one name differ by their ids, and in their time.
		const id = row.group === null ? ` ${thread.tid}` : "";
		const text = `${sign}${cut(visible(name), Math.floor(room / 6.4) - sign.length - id.length)}`;
		context.fillText(text, left + 9, middle, room);
		const behind = left + 9 + Math.min(room, context.measureText(text).width);
		context.font = `12px ${colors.font}`;
		context.fillStyle = colors.ink2;
		context.fillText(id, behind, middle);
		context.font = `11px ${colors.font}`;
		context.fillStyle = colors.ink3;
		context.textAlign = "right";
		const time = row.members.reduce((a, t) => a + t.time_ns, 0);
		context.fillText(duration(time), NAME_WIDTH - 10, middle);
		context.textAlign = "left";
		paintLayerNames(scene, lane);
	}
	context.fillStyle = colors.lineStrong;
	context.fillRect(NAME_WIDTH - 1, 0, 1, scene.height);
}

function cut(text: string, most: number): string {
	return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

function paintRuler(scene: Scene, marks: readonly number[], step: number): void {
	const { context, colors } = scene;
	context.fillStyle = colors.surface;
	context.fillRect(0, 0, scene.width, RULER_HEIGHT);
	context.fillStyle = colors.lineStrong;
	context.fillRect(0, RULER_HEIGHT - 1, scene.width, 1);
	context.font = `11px ${colors.font}`;
	context.textBaseline = "middle";
	context.fillStyle = colors.ink3;
	context.fillText(scene.rows.length === 1 ? "1 lane" : `${scene.rows.length} lanes`, 10, RULER_HEIGHT / 2);
	context.save();
	context.beginPath();
	context.rect(NAME_WIDTH, 0, scene.width, RULER_HEIGHT);
	context.clip();
	for (const t of marks) {
		const at = Math.round(timeX(scene, t));
		context.fillStyle = colors.lineStrong;
		context.fillRect(at, RULER_HEIGHT - 6, 1, 5);
		context.fillStyle = colors.ink2;
		context.fillText(time(t, step), at + 4, RULER_HEIGHT / 2);
	}
	context.restore();
}
