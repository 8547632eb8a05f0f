// Draws the states of threads below their calls, and wake-ups as arrows.

import { colorOf } from "../../lib/color";
import { fitted, hatch, laneTop, NAME_WIDTH, type Scene, timeX } from "./paint";
import { colorOfKey, keyOf, labelOf, type States, wakesOf } from "./states";

/** Arrows that are drawn without being pointed at. */
export const ARROWS = 80;
const TEXT_FROM = 44;
const CHARACTER = 5.8;

function stripTop(scene: Scene, lane: number): number {
	return laneTop(scene, lane) + scene.sizes.calls;
}

export function paintStates(scene: Scene): void {
	const { states, sizes } = scene;
	if (sizes.states === 0) return;
	const tall = sizes.states - 3;
	for (let lane = scene.lanes.first; lane <= scene.lanes.last; lane += 1) {
		const row = scene.rows[lane];
		if (!row) continue;
		const top = stripTop(scene, lane);
		if (!states || states.mode === "many" || states.mode === "none") {
			hatch(scene, NAME_WIDTH, scene.width, top, tall);
			continue;
		}
		hatch(scene, NAME_WIDTH, timeX(scene, states.from), top, tall);
		hatch(scene, timeX(scene, states.to), scene.width, top, tall);
		const known = row.members.filter(({ tid }) => states.threads.has(tid));
		// Several that share a lane share the height of its strip.
		const part = tall / Math.max(1, known.length);
		known.forEach(({ tid }, i) => {
			if (states.mode === "periods") paintPeriods(scene, states, tid, top + i * part, part);
			else paintSums(scene, states, tid, top + i * part, part);
		});
	}
	if (states) paintWakes(scene, states);
}

/** A line in the middle of an empty box: nothing is known, which is neither running nor waiting. */
function paintUnknown(scene: Scene, left: number, right: number, top: number, tall: number): void {
	const { context, theme } = scene;
	context.strokeStyle = colorOf("state", "unknown", theme);
	context.lineWidth = 1;
	context.strokeRect(left + 0.5, top + 0.5, Math.max(0, right - left - 1), Math.max(0, tall - 1));
	context.setLineDash([2, 3]);
	context.beginPath();
	context.moveTo(left, top + tall / 2);
	context.lineTo(right, top + tall / 2);
	context.stroke();
	context.setLineDash([]);
}

function paintPeriods(scene: Scene, states: States, tid: number, top: number, tall: number): void {
	const { context, span, theme, colors } = scene;
	const [first, end] = states.threads.get(tid) ?? [0, 0];
	context.font = `10px ${colors.font}`;
	context.textBaseline = "middle";
	for (let i = first; i < end; i += 1) {
		const t = states.t[i] ?? 0;
		const until = t + (states.dur[i] ?? 0);
		if (t > span.to) break;
		if (until < span.from) continue;
		const left = Math.max(NAME_WIDTH - 2, timeX(scene, t));
		const right = Math.min(scene.width + 2, timeX(scene, until));
		const key = keyOf(states, i);
		if (key === "unknown") {
			paintUnknown(scene, left, right, top, tall);
		} else {
			context.fillStyle = colorOfKey(key, theme);
			// Narrower than a pixel they are as pale as they are short.
			context.fillRect(left, top, right - left, tall);
		}
		if (i === scene.pointed) {
			context.strokeStyle = colors.ink;
			context.lineWidth = 1.5;
			context.strokeRect(left, top, Math.max(1, right - left), tall);
		}
		if (right - left < TEXT_FROM || tall < 10) continue;
		const ink = theme === "dark" ? "#07111a" : "#ffffff";
		context.fillStyle = key === "unknown" ? colors.ink2 : ink;
		const text = fitted(labelOf(key).replace("blocked: ", ""), Math.floor((right - left - 6) / CHARACTER));
		if (key === "unknown" && text) {
			const wide = context.measureText(text).width;
			context.fillStyle = colors.surface;
			context.fillRect(left + 2, top + 1, wide + 3, tall - 2);
			context.fillStyle = colors.ink2;
		}
		if (text) context.fillText(text, left + 3, top + tall / 2 + 0.5);
	}
}

function paintSums(scene: Scene, states: States, tid: number, top: number, tall: number): void {
	const { context, span, theme } = scene;
	const [first, end] = states.threads.get(tid) ?? [0, 0];
	let at = Number.NaN;
	let bottom = top + tall;
	for (let i = first; i < end; i += 1) {
		const t = states.t[i] ?? 0;
		if (t !== at) bottom = top + tall;
		at = t;
		if (t > span.to || t + states.bucket < span.from) continue;
		const left = Math.max(NAME_WIDTH - 2, timeX(scene, t));
		const right = timeX(scene, Math.min(t + states.bucket, states.to));
		const part = ((states.dur[i] ?? 0) / states.bucket) * tall;
		bottom -= part;
		const key = keyOf(states, i);
		if (key === "unknown") {
			paintUnknown(scene, left, right, bottom, part);
			continue;
		}
		context.fillStyle = colorOfKey(key, theme);
		context.fillRect(left, bottom, right - left, part);
	}
}

function paintWakes(scene: Scene, states: States): void {
	const wakes = wakesOf(states, scene.rows, scene.span);
	const { context, colors } = scene;
	for (const wake of wakes) {
		const pointed = wake.row === scene.pointed;
		if (!pointed && wakes.length > ARROWS) continue;
		const x = timeX(scene, wake.t);
		const half = (scene.sizes.states - 3) / 2;
		const begin = stripTop(scene, wake.from) + half;
		const end = stripTop(scene, wake.to) + half;
		const down = end > begin ? 1 : -1;
		context.strokeStyle = pointed ? colors.accent : colors.ink;
		context.fillStyle = pointed ? colors.accent : colors.ink;
		context.lineWidth = pointed ? 2 : 1;
		context.beginPath();
		context.moveTo(x, begin);
		context.lineTo(x, end - down * 5);
		context.stroke();
		context.fillRect(x - 1.5, begin - 1.5, 3, 3);
		context.beginPath();
		context.moveTo(x, end);
		context.lineTo(x - 3.5, end - down * 6);
		context.lineTo(x + 3.5, end - down * 6);
		context.fill();
	}
}
