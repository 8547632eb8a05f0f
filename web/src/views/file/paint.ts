// Points and cells of the file's plot.

import type { Frame } from "../../components/plotframe";
import { colorOf, durationShare, ramp, type Theme } from "../../lib/color";
import type { Cells, Points } from "./accesses";
import { leastSide } from "./accesses";

export type ColorBy = "kind" | "latency" | "thread";

type Draw = (context: CanvasRenderingContext2D, frame: Frame) => void;

/** Steps of the ramp that are told apart: enough for the eye, few enough to draw by color. */
const STEPS = 24;

function step(ns: number): number {
	return Math.round(durationShare(ns) * (STEPS - 1));
}

function stepColor(at: number, theme: Theme): string {
	return ramp(0.15 + (0.85 * at) / (STEPS - 1), theme);
}

export function paintPoints(points: Points, by: ColorBy, theme: Theme, rid: number | null): Draw {
	const colors = new Map<string, number[]>();
	const put = (color: string, i: number) => {
		const list = colors.get(color);
		if (list) list.push(i);
		else colors.set(color, [i]);
	};
	const order = Array.from({ length: points.rows }, (_, i) => i);
	// What is slow lies above what is quick, so that it can be seen.
	if (by === "latency") order.sort((a, b) => (points.dur[a] ?? 0) - (points.dur[b] ?? 0));
	for (const i of order) {
		if (by === "kind")
			put(colorOf("series", points.fault[i] ? "faults" : points.write[i] ? "written" : "read", theme), i);
		else if (by === "thread") put(colorOf("thread", String(points.tid[i]), theme), i);
		else put(stepColor(step(points.dur[i] ?? 0), theme), i);
	}
	const selected = rid === null ? -1 : points.rid.indexOf(rid);
	return (context, frame) => {
		const box = (i: number) => {
			const side = leastSide(points.bytes[i] ?? 0) * frame.ratio;
			const x0 = frame.x(points.t[i] ?? 0);
			const x1 = frame.x((points.t[i] ?? 0) + (points.dur[i] || 0));
			const y0 = frame.y(points.offset[i] ?? 0);
			const y1 = frame.y((points.offset[i] ?? 0) + (points.bytes[i] || 0));
			const wide = Math.max(side, x1 - x0);
			const tall = Math.max(side, y0 - y1);
			return [(x0 + x1 - wide) / 2, (y0 + y1 - tall) / 2, wide, tall] as const;
		};
		context.globalAlpha = points.rows > 4000 ? 0.7 : 0.9;
		for (const [color, list] of colors) {
			context.fillStyle = color;
			for (const i of list) {
				if (points.fault[i]) touched(context, frame, points, i);
				else context.fillRect(...box(i));
			}
		}
		context.globalAlpha = 1;
		if (selected >= 0) {
			const [x, y, wide, tall] = box(selected);
			const margin = 4 * frame.ratio;
			context.lineWidth = 2 * frame.ratio;
			context.strokeStyle = theme === "dark" ? "#ffffff" : "#16202b";
			context.strokeRect(x - margin, y - margin, wide + 2 * margin, tall + 2 * margin);
		}
	};
}

/** Side of the mark of a page fault: it has a place in the file and no length. */
const FAULT_SIDE = 4;

function touched(context: CanvasRenderingContext2D, frame: Frame, points: Points, i: number): void {
	const side = FAULT_SIDE * frame.ratio;
	const x = (frame.x(points.t[i] ?? 0) + frame.x((points.t[i] ?? 0) + (points.dur[i] || 0))) / 2;
	const y = frame.y(points.offset[i] ?? 0);
	context.fillRect(x - side / 2, y - side / 2, side, side);
}

type Rgba = readonly [number, number, number];

/** A picture of one pixel a cell, which is stretched over the frame. */
export function paintCells(cells: Cells, by: ColorBy, theme: Theme): Draw {
	const picture = document.createElement("canvas");
	picture.width = Math.max(1, cells.width);
	picture.height = Math.max(1, cells.height);
	const image = new ImageData(picture.width, picture.height);
	let most = 1;
	let least = Number.POSITIVE_INFINITY;
	for (let i = 0; i < cells.rows; i += 1) {
		const here = (cells.reads[i] || 0) + (cells.writes[i] || 0);
		most = Math.max(most, here);
		least = Math.min(least, here);
	}
	const low = Math.log1p(least);
	const range = Math.log1p(most) - low;
	const known = new Map<string, Rgba>();
	const rgb = (color: string): Rgba => {
		const before = known.get(color);
		if (before) return before;
		const made = toRgb(color);
		known.set(color, made);
		return made;
	};
	const read = rgb(colorOf("series", "read", theme));
	const written = rgb(colorOf("series", "written", theme));
	const fault = rgb(colorOf("series", "faults", theme));
	for (let i = 0; i < cells.rows; i += 1) {
		const x = cells.x[i] ?? 0;
		const y = cells.height - 1 - (cells.y[i] ?? 0);
		const reads = cells.reads[i] || 0;
		const writes = cells.writes[i] || 0;
		let color: Rgba;
		if (by === "latency") color = rgb(stepColor(step(cells.max[i] ?? 0), theme));
		else if (by === "thread") color = rgb(colorOf("thread", String(cells.tid[i]), theme));
		else {
			const share = reads + writes > 0 ? writes / (reads + writes) : 0;
			const faults = reads + writes > 0 ? (cells.faults[i] || 0) / (reads + writes) : 0;
			const of = (part: 0 | 1 | 2) => mix(mix(read[part], written[part], share), fault[part], faults);
			color = [of(0), of(1), of(2)];
		}
		const at = (y * picture.width + x) * 4;
		image.data[at] = color[0];
		image.data[at + 1] = color[1];
		image.data[at + 2] = color[2];
		// One access among millions can still be seen, and a path that is walked often stands out of a cloud.
		const share = range > 0 ? (Math.log1p(reads + writes) - low) / range : 1;
		image.data[at + 3] = 135 + Math.round(120 * share);
	}
	picture.getContext("2d")?.putImageData(image, 0, 0);
	return (context, frame) => {
		const left = frame.x(cells.time.from);
		const right = frame.x(cells.time.to);
		const upper = frame.y(cells.offsets.to);
		const lower = frame.y(cells.offsets.from);
		context.imageSmoothingEnabled = false;
		context.drawImage(picture, left, upper, right - left, lower - upper);
	};
}

function mix(a: number, b: number, share: number): number {
	return Math.round(a + (b - a) * share);
}

/** Red, green and blue of a color in the notation of style sheets. */
function toRgb(color: string): Rgba {
	const canvas = document.createElement("canvas");
	canvas.width = 1;
	canvas.height = 1;
	const context = canvas.getContext("2d");
	if (!context) return [128, 128, 128];
	context.fillStyle = color;
	context.fillRect(0, 0, 1, 1);
	const [r = 0, g = 0, b = 0] = context.getImageData(0, 0, 1, 1).data;
	return [r, g, b];
}
