// What owners of plots have besides series: an axis of their own, a sheet that they draw on, clicks.

import type { ReactNode } from "react";
import uPlot from "uplot";
import type { Span } from "../lib/scale";

/** A point of a plot below the pointer. */
export interface Pointed {
	/** Bucket; -1 outside of all. */
	index: number;
	/** Position on the axes. */
	t: number;
	value: number;
	/** What a pixel stands for on the axes. */
	perX: number;
	perY: number;
}

/** A horizontal axis of something else than the session's time. */
export interface Axis {
	/** Where its ticks stand, when there is room for so many. */
	ticks: (span: Span, room: number) => number[];
	format: (value: number) => string;
	/** What stands above the values beside the pointer. */
	head: (index: number) => ReactNode;
	/** What a drag over a part of it means. */
	brush?: (span: Span) => void;
	/** Plots with the same one share their cursor. */
	sync?: string;
}

/** The frame of a plot, in pixels of its canvas. */
export interface Frame {
	left: number;
	top: number;
	width: number;
	height: number;
	ratio: number;
	x: (t: number) => number;
	y: (value: number) => number;
}

/** What the owner of a plot draws into its frame: points, cells. */
export interface Sheet {
	draw: (context: CanvasRenderingContext2D, frame: Frame) => void;
	/** What stands beside the pointer instead of the values of series; null for nothing. */
	tip?: (at: Pointed) => ReactNode;
}

/** Where values lie. */
interface Places {
	t: Float64Array;
	bucket: number;
	loose?: boolean | undefined;
	/** Values that are drawn as dots at the begins of buckets. */
	dots?: Float64Array | undefined;
	/** Where a value of a dot stands on the vertical axis. */
	scaled?: (value: number) => number;
}

/** A dot within so many pixels of the pointer is meant, not the bucket below the pointer. */
const DOT_REACH = 7;

/** The place of the dot at a position in pixels; -1 for none. */
export function dotAt(
	dots: readonly number[] | Float64Array,
	x: (place: number) => number,
	y: (value: number) => number,
	at: { left: number; top: number },
): number {
	let best = -1;
	let least = DOT_REACH;
	for (let i = 0; i < dots.length; i += 1) {
		const dx = x(i) - at.left;
		const value = dots[i] ?? Number.NaN;
		if (Math.abs(dx) >= least || !Number.isFinite(value)) continue;
		const distance = Math.hypot(dx, y(value) - at.top);
		if (distance < least) {
			least = distance;
			best = i;
		}
	}
	return best;
}

interface Clicked extends Places {
	onPick?: ((at: Pointed) => void) | undefined;
}

/** What lies at a position in the frame of a plot. */
export function pointed(u: uPlot, { t, bucket, loose, dots, scaled }: Places, left: number, top: number): Pointed {
	const at = u.posToVal(left, "x");
	const value = u.posToVal(top, "y");
	const x = (place: number) => u.valToPos(t[place] ?? 0, "x");
	const y = (dot: number) => u.valToPos(scaled?.(dot) ?? dot, "y");
	const dot = dots && !loose ? dotAt(dots, x, y, { left, top }) : -1;
	const index = dot >= 0 ? dot : loose ? nearestIndex(t, at) : placeAt(t, bucket, at);
	return {
		index: index >= 0 && index < t.length ? index : -1,
		t: at,
		value,
		perX: Math.abs(u.posToVal(left + 1, "x") - at),
		perY: Math.abs(u.posToVal(top + 1, "y") - value),
	};
}

/** The bucket that contains a position: each reaches to the next one, and the last is `bucket` wide. */
function placeAt(t: Float64Array, bucket: number, at: number): number {
	let low = 0;
	let high = t.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if ((t[middle] ?? 0) <= at) low = middle + 1;
		else high = middle;
	}
	return low === t.length && at >= (t[low - 1] ?? 0) + bucket ? -1 : low - 1;
}

/** The place of the time that is nearest, of times in their order. */
function nearestIndex(t: Float64Array, at: number): number {
	let low = 0;
	let high = t.length - 1;
	while (low < high) {
		const middle = (low + high) >> 1;
		if ((t[middle] ?? 0) < at) low = middle + 1;
		else high = middle;
	}
	return low > 0 && at - (t[low - 1] ?? 0) < (t[low] ?? 0) - at ? low - 1 : low;
}

/** A click is a press and a release at one place: anything else was a brush. */
export function listenForClicks(u: uPlot, latest: () => Clicked): void {
	let down: { x: number; y: number } | null = null;
	u.over.addEventListener("mousedown", (event) => {
		down = event.button === 0 ? { x: event.clientX, y: event.clientY } : null;
	});
	u.over.addEventListener("mouseup", (event) => {
		if (down === null || Math.hypot(event.clientX - down.x, event.clientY - down.y) > 3) return;
		const box = u.over.getBoundingClientRect();
		const clicked = latest();
		clicked.onPick?.(pointed(u, clicked, event.clientX - box.left, event.clientY - box.top));
	});
}

/** Draws a sheet, and nothing of it beyond the frame. */
export function drawSheet(u: uPlot, sheet: Sheet | undefined): void {
	if (!sheet) return;
	const { left, top, width, height } = u.bbox;
	u.ctx.save();
	u.ctx.beginPath();
	u.ctx.rect(left, top, width, height);
	u.ctx.clip();
	sheet.draw(u.ctx, {
		left,
		top,
		width,
		height,
		ratio: uPlot.pxRatio,
		x: (t) => u.valToPos(t, "x", true),
		y: (value) => u.valToPos(value, "y", true),
	});
	u.ctx.restore();
}
