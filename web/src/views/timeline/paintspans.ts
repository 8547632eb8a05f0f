// Draws the application's spans above the calls of their threads.

import { colorOf } from "../../lib/color";
import { visible } from "../../lib/format";
import { nameText } from "../../lib/spans";
import { fitted, hatch, laneEdge, laneTop, NAME_WIDTH, type Scene, timeX } from "./paint";
import type { SpanBar } from "./spans";

/** A row is not higher than this: its text has room. */
const ROW = 12;
const TEXT_FROM = 34;
const CHARACTER = 5.8;
/** A span this far from the pointer is still meant. */
const REACH = 3;

function rowHeight(scene: Scene): number {
	return Math.min(ROW, (scene.sizes.spans - 2) / (scene.spans?.rows ?? 1));
}

/** The outermost span is at the top; the innermost touches the calls. */
function rowTop(scene: Scene, lane: number, depth: number): number {
	return laneTop(scene, lane) - ((scene.spans?.rows ?? 1) - depth) * rowHeight(scene);
}

export function paintSpans(scene: Scene): void {
	const { context, spans, sizes, span, theme, colors } = scene;
	if (sizes.spans === 0) return;
	const tall = rowHeight(scene) - 1;
	context.font = `10px ${colors.font}`;
	context.textBaseline = "middle";
	for (let lane = scene.lanes.first; lane <= scene.lanes.last; lane += 1) {
		const row = scene.rows[lane];
		if (!row) continue;
		const edge = laneEdge(scene, lane) + 2;
		if (!spans) {
			hatch(scene, NAME_WIDTH, scene.width, edge, sizes.spans - 3);
			continue;
		}
		hatch(scene, NAME_WIDTH, timeX(scene, spans.from), edge, sizes.spans - 3);
		hatch(scene, timeX(scene, spans.to), scene.width, edge, sizes.spans - 3);
		for (const { tid } of row.members) {
			const all = spans.threads.get(tid) ?? [];
			// Where many are narrower than a pixel they are as pale as they are short: a row of them is not all busy.
			const least = all.length > scene.width / 4 ? 0 : 1;
			for (const one of all) {
				if (one.t > span.to) break;
				if (one.t + one.dur < span.from) continue;
				const left = Math.max(NAME_WIDTH - 2, timeX(scene, one.t));
				const right = Math.min(scene.width + 2, timeX(scene, one.t + one.dur));
				const top = rowTop(scene, lane, one.depth);
				context.fillStyle = colorOf("span", one.name ?? "", theme);
				context.fillRect(left, top, Math.max(least, right - left - (right - left > 4 ? 0.5 : 0)), tall);
				if (right - left < TEXT_FROM || tall < 10) continue;
				context.fillStyle = theme === "dark" ? "#07111a" : "#ffffff";
				const text = fitted(visible(nameText(one)), Math.floor((right - left - 6) / CHARACTER));
				if (text) context.fillText(text, left + 3, top + tall / 2 + 0.5);
			}
		}
	}
}

/** The span of a thread below the pointer. */
export function spanAt(scene: Scene, tid: number, lane: number, x: number, y: number): SpanBar | null {
	let best: SpanBar | null = null;
	let least = REACH;
	for (const one of scene.spans?.threads.get(tid) ?? []) {
		const top = rowTop(scene, lane, one.depth);
		if (y < top || y >= top + rowHeight(scene)) continue;
		const [left, right] = [timeX(scene, one.t), timeX(scene, one.t + one.dur)];
		const distance = x < left ? left - x : x > right ? x - right : 0;
		if (distance <= least) {
			least = distance;
			best = one;
		}
	}
	return best;
}
