// Plots as pictures: the canvases of a panel on one sheet, with its title, unit and legend, so that the picture can be
// read without the page.

import { visible } from "../lib/format";
import { store } from "../state/store";
import { token } from "../state/theme";
import { saveBlob, savedName } from "./save";

const MARGIN = 12;
const TITLE = 34;
const LINE = 18;
const SWATCH = 9;

/** Words that stand between the plots of a panel: what each of them shows. */
const WORDS = ".subplot, .devices-sub, .thread-lane-name, .machine-name";

/** Draws all canvases below an element where they stand, and offers the picture for download. */
export function savePng(element: HTMLElement, title: string, name: string): void {
	const sheet = drawSheet(element, title);
	sheet.toBlob((blob) => {
		if (blob) saveBlob(blob, `${savedName(store.get().session, name)}.png`);
	});
}

function drawSheet(element: HTMLElement, title: string): HTMLCanvasElement {
	const ratio = window.devicePixelRatio || 1;
	const box = element.getBoundingClientRect();
	const sheet = document.createElement("canvas");
	const context = sheet.getContext("2d");
	if (!context) return sheet;
	const entries = entriesOf(element.closest(".panel") ?? element);
	context.font = legendFont();
	const lines = linesOf(entries, box.width, (text) => context.measureText(text).width);
	const top = TITLE + lines.length * LINE;
	sheet.width = Math.round((box.width + 2 * MARGIN) * ratio);
	sheet.height = Math.round((box.height + MARGIN + top) * ratio);
	context.scale(ratio, ratio);
	context.fillStyle = token("--surface");
	context.fillRect(0, 0, sheet.width, sheet.height);
	drawTitle(context, element, title, box.width);
	lines.forEach((line, i) => {
		drawLine(context, line, TITLE + i * LINE);
	});
	const place = (at: DOMRect) => ({ x: at.left - box.left + MARGIN, y: at.top - box.top + top });
	for (const canvas of element.querySelectorAll("canvas")) {
		const at = canvas.getBoundingClientRect();
		if (at.width === 0 || at.height === 0) continue;
		const { x, y } = place(at);
		context.drawImage(canvas, x, y, at.width, at.height);
	}
	for (const words of element.querySelectorAll(WORDS)) if (inSight(words, element)) drawWords(context, words, place);
	return sheet;
}

/** Whether nothing of an element is scrolled out of sight in those around it. */
function inSight(words: Element, within: Element): boolean {
	const { top, bottom } = words.getBoundingClientRect();
	for (let at = words.parentElement; at && at !== within; at = at.parentElement) {
		const around = at.getBoundingClientRect();
		if (top < around.top - 1 || bottom > around.bottom + 1) return false;
	}
	return true;
}

/** What the plots show, and of which session. */
function drawTitle(context: CanvasRenderingContext2D, element: HTMLElement, title: string, width: number): void {
	const unit = element.closest(".panel")?.querySelector(".panel-head .note")?.textContent ?? "";
	context.fillStyle = token("--ink");
	context.font = `600 14px ${token("--font")}`;
	const { session } = store.get();
	const text = session === null ? title : `${visible(session)} · ${title}`;
	context.fillText(text, MARGIN, 22);
	const behind = MARGIN + context.measureText(text).width + 10;
	context.font = legendFont();
	context.fillStyle = token("--ink-3");
	if (behind + context.measureText(unit).width < width) context.fillText(unit, behind, 22);
}

/** An entry of a legend. */
export interface Entry {
	label: string;
	color: string;
}

function entriesOf(panel: Element): Entry[] {
	return [...panel.querySelectorAll(".legend button, .legend .entry")].flatMap((entry) => {
		const swatch = entry.querySelector(".swatch");
		const label = entry.textContent?.trim() ?? "";
		return swatch && label !== "" ? [{ label, color: getComputedStyle(swatch).backgroundColor }] : [];
	});
}

function legendFont(): string {
	return `12px ${token("--font")}`;
}

/** Entries with their places, in as many lines as they need. */
export function linesOf(
	entries: readonly Entry[],
	width: number,
	measure: (text: string) => number,
): (Entry & { x: number })[][] {
	const lines: (Entry & { x: number })[][] = [];
	let x = 0;
	for (const entry of entries) {
		const wide = SWATCH + 5 + measure(entry.label) + 16;
		const line = lines.at(-1);
		if (!line || x + wide > width) {
			lines.push([{ ...entry, x: 0 }]);
			x = wide;
		} else {
			line.push({ ...entry, x });
			x += wide;
		}
	}
	return lines;
}

function drawLine(context: CanvasRenderingContext2D, line: readonly (Entry & { x: number })[], top: number): void {
	context.font = legendFont();
	for (const { label, color, x } of line) {
		context.fillStyle = color;
		context.fillRect(MARGIN + x, top + 2, SWATCH, SWATCH);
		context.fillStyle = token("--ink-2");
		context.fillText(label, MARGIN + x + SWATCH + 5, top + SWATCH + 1.5);
	}
}

/** Text of the page where it stands, with the swatches in it. */
function drawWords(
	context: CanvasRenderingContext2D,
	words: Element,
	place: (at: DOMRect) => { x: number; y: number },
): void {
	for (const swatch of words.querySelectorAll(".swatch")) {
		const at = swatch.getBoundingClientRect();
		const { x, y } = place(at);
		context.fillStyle = getComputedStyle(swatch).backgroundColor;
		context.fillRect(x, y, at.width, at.height);
	}
	const style = getComputedStyle(words);
	context.font = `${style.fontSize} ${token("--font")}`;
	context.fillStyle = style.color;
	const texts = document.createTreeWalker(words, NodeFilter.SHOW_TEXT);
	const range = document.createRange();
	for (let node = texts.nextNode(); node; node = texts.nextNode()) {
		range.selectNodeContents(node);
		const at = range.getBoundingClientRect();
		if (at.width === 0) continue;
		const { x, y } = place(at);
		context.textBaseline = "middle";
		context.fillText(node.textContent ?? "", x, y + at.height / 2);
		context.textBaseline = "alphabetic";
	}
}
