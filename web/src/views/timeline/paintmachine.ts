// Draws a plot of the machine on the time axis of the lanes.

import { type Span, ticks, timeStep, toPixel } from "../../lib/scale";
import type { MachineLine, MachinePlot } from "./machine";
import type { Palette } from "./paint";

export interface Canvas {
	context: CanvasRenderingContext2D;
	width: number;
	height: number;
	ratio: number;
	colors: Palette;
	span: Span;
	bounds: Span;
	/** What is being selected. */
	marked: Span | null;
}

const PAD = 3;
const MARK = 140;

export function paintMachine(on: Canvas, plot: MachinePlot): void {
	const { context, width, height, span, colors } = on;
	context.setTransform(on.ratio, 0, 0, on.ratio, 0, 0);
	context.fillStyle = colors.surface;
	context.fillRect(0, 0, width, height);
	context.fillStyle = colors.line;
	for (const t of ticks(span, timeStep(span, width / MARK)))
		context.fillRect(Math.round(toPixel(t, span, width)), 0, 1, height);
	const bottoms = new Float64Array(plot.t.length);
	for (const line of plot.lines) if (line.style === "stack") paintStack(on, plot, line, bottoms);
	// The first one on top of the others.
	for (const line of plot.lines.toReversed()) if (line.style !== "stack") paintLine(on, plot, line);
	// What lies beyond the session is no idle time.
	context.fillStyle = colors.ground;
	const begin = toPixel(on.bounds.from, span, width);
	const end = toPixel(on.bounds.to, span, width);
	if (begin > 0) context.fillRect(0, 0, begin, height);
	if (end < width) context.fillRect(end, 0, width - end, height);
	if (on.marked) {
		const left = toPixel(on.marked.from, span, width);
		context.globalAlpha = 0.16;
		context.fillStyle = colors.accent;
		context.fillRect(left, 0, toPixel(on.marked.to, span, width) - left, height);
		context.globalAlpha = 1;
	}
}

/** Where a row begins and ends, in whole pixels of the screen, so that neighbors touch; null out of sight. */
function sides(on: Canvas, plot: MachinePlot, row: number): { left: number; right: number } | null {
	const from = plot.from[row] ?? 0;
	const to = (plot.t[row] ?? 0) + (plot.dur[row] ?? 0);
	if (to < on.span.from || from > on.span.to) return null;
	const at = (t: number) => Math.round(toPixel(t, on.span, on.width) * on.ratio) / on.ratio;
	const left = Math.max(-2, at(from));
	return { left, right: Math.max(left + 1 / on.ratio, Math.min(on.width + 2, at(to))) };
}

function levelY(on: Canvas, plot: MachinePlot, value: number): number {
	return on.height - 1 - (Math.min(value, plot.top) / plot.top) * (on.height - 1 - PAD);
}

function paintStack(on: Canvas, plot: MachinePlot, line: MachineLine, bottoms: Float64Array): void {
	on.context.fillStyle = line.color;
	for (let i = 0; i < bottoms.length; i += 1) {
		const value = line.values[i] ?? Number.NaN;
		const place = sides(on, plot, i);
		const bottom = bottoms[i] ?? 0;
		if (!(value > 0)) continue;
		bottoms[i] = bottom + value;
		if (!place) continue;
		const low = levelY(on, plot, bottom);
		// Something is seen of what is not nothing.
		const high = Math.min(low - 1, levelY(on, plot, bottom + value));
		on.context.fillRect(place.left, high, place.right - place.left, low - high);
	}
}

function paintLine(on: Canvas, plot: MachinePlot, line: MachineLine): void {
	const { context } = on;
	context.strokeStyle = line.style === "limit" ? on.colors.ink : line.color;
	context.lineWidth = line.style === "limit" ? 1 : 1.5;
	context.setLineDash(line.style === "limit" ? [4, 3] : []);
	context.beginPath();
	let open = false;
	for (let i = 0; i < plot.t.length; i += 1) {
		const value = line.values[i] ?? Number.NaN;
		const place = sides(on, plot, i);
		if (!place || !Number.isFinite(value)) {
			open = false;
			continue;
		}
		const y = levelY(on, plot, value) - 0.5;
		if (open) context.lineTo(place.left, y);
		else context.moveTo(place.left, y);
		context.lineTo(place.right, y);
		open = true;
	}
	context.stroke();
	context.setLineDash([]);
}
