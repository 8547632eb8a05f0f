// Draws the rows of layers below the calls of each thread.

import { colorOf } from "../../lib/color";
import type { Below, LayerSums, Visits } from "./layers";
import { fitted, hatch, laneTop, NAME_WIDTH, type Scene, timeX } from "./paint";

const FONT = 10;
/** Names are drawn in visits at least this wide. */
const TEXT_FROM = 40;
const CHARACTER = 5.8;

/** Where the row of a layer begins. */
export function layerTop(scene: Scene, lane: number, row: number): number {
	return laneTop(scene, lane) + scene.sizes.calls + scene.sizes.states + row * scene.sizes.row;
}

/** What was seen below the calls in sight. */
export function paintLayers(scene: Scene): void {
	const { context, layers, below, colors } = scene;
	if (layers.length === 0) return;
	context.font = `${FONT}px ${colors.font}`;
	context.textBaseline = "middle";
	for (let lane = scene.lanes.first; lane <= scene.lanes.last; lane += 1) {
		const row = scene.rows[lane];
		if (!row) continue;
		layers.forEach((layer, i) => {
			const top = layerTop(scene, lane, i);
			if (top > scene.height || top + scene.sizes.row < 0) return;
			context.globalAlpha = 0.35;
			context.fillStyle = colors.line;
			context.fillRect(NAME_WIDTH, Math.round(top), scene.width, 1);
			context.globalAlpha = 1;
			if (!below || below.mode === "many") {
				if (!below) hatch(scene, NAME_WIDTH, scene.width, top + 1.5, scene.sizes.row - 2);
				return;
			}
			// An answer for another window, until that for this one is there.
			hatch(scene, NAME_WIDTH, timeX(scene, below.from), top + 1.5, scene.sizes.row - 2);
			hatch(scene, timeX(scene, below.to), scene.width, top + 1.5, scene.sizes.row - 2);
			context.fillStyle = colorOf("layer", layer, scene.theme);
			for (const { tid } of row.members) {
				const part = below.threads.get(tid)?.get(layer);
				if (part?.visits) paintVisits(scene, part.visits, top);
				else if (part?.sums) paintSums(scene, below, part.sums, top);
			}
		});
	}
}

function paintVisits(scene: Scene, visits: Visits, top: number): void {
	const { context, span, colors, theme } = scene;
	const height = scene.sizes.row - 2;
	const fill = context.fillStyle;
	for (let i = 0; i < visits.length; i += 1) {
		const t = visits.t[i] ?? 0;
		const end = t + (visits.dur[i] ?? 0);
		if (t > span.to) break;
		if (end < span.from) continue;
		const left = Math.max(NAME_WIDTH - 2, timeX(scene, t));
		const wide = Math.max(1, Math.min(scene.width + 2, timeX(scene, end)) - left);
		const own = visits.rid[i] === scene.selected || visits.rid[i] === scene.hovered;
		context.fillStyle = fill;
		context.fillRect(left, top + 1.5, wide > 4 ? wide - 0.5 : wide, height);
		if (own && wide > 3) {
			context.strokeStyle = visits.rid[i] === scene.selected ? colors.ink : colors.ink2;
			context.lineWidth = 1;
			context.strokeRect(left + 0.5, top + 2, wide - 1.5, height - 1);
		}
		if (wide < TEXT_FROM) continue;
		context.fillStyle = theme === "dark" ? "#07111a" : "#ffffff";
		const text = fitted(visits.name[i] ?? "", Math.floor((wide - 6) / CHARACTER));
		if (text) context.fillText(text, left + 3, top + 1.5 + height / 2 + 0.5);
	}
}

function paintSums(scene: Scene, below: Below, sums: LayerSums, top: number): void {
	const { context, span } = scene;
	const height = scene.sizes.row - 2;
	const first = Math.max(0, Math.floor((span.from - below.from) / below.bucket));
	const last = Math.min(below.buckets - 1, Math.floor((span.to - below.from) / below.bucket));
	for (let i = first; i <= last; i += 1) {
		const time = sums.time[i] ?? 0;
		if (time <= 0) continue;
		const left = timeX(scene, below.from + i * below.bucket);
		const wide = timeX(scene, below.from + (i + 1) * below.bucket) - left;
		const tall = Math.max(1, Math.min(1, time / below.bucket) * height);
		context.fillRect(left, top + 1.5 + height - tall, Math.max(1, wide), tall);
	}
}

/** The names of the layers, below that of their thread. */
export function paintLayerNames(scene: Scene, lane: number): void {
	const { context, colors, theme, layers } = scene;
	context.font = `${FONT}px ${colors.font}`;
	context.textBaseline = "middle";
	layers.forEach((layer, i) => {
		const middle = layerTop(scene, lane, i) + scene.sizes.row / 2 + 0.5;
		context.fillStyle = colorOf("layer", layer, theme);
		context.fillRect(29, middle - 3, 6, 6);
		context.fillStyle = colors.ink2;
		context.fillText(layer, 40, middle);
	});
}
