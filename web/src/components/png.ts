// Plots as pictures: the canvases of a panel on one sheet, with its title.

import { token } from "../state/theme";

const MARGIN = 12;
const TITLE = 34;

/** Draws all canvases below an element where they stand, and offers the picture for download. */
export function savePng(element: HTMLElement, title: string, name: string): void {
	const sheet = drawSheet(element, title);
	sheet.toBlob((blob) => {
		if (!blob) return;
		const link = document.createElement("a");
		link.href = URL.createObjectURL(blob);
		link.download = `${fileName(name)}.png`;
		link.click();
		setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
	});
}

export function drawSheet(element: HTMLElement, title: string): HTMLCanvasElement {
	const ratio = window.devicePixelRatio || 1;
	const box = element.getBoundingClientRect();
	const sheet = document.createElement("canvas");
	sheet.width = Math.round((box.width + 2 * MARGIN) * ratio);
	sheet.height = Math.round((box.height + MARGIN + TITLE) * ratio);
	const context = sheet.getContext("2d");
	if (!context) return sheet;
	context.scale(ratio, ratio);
	context.fillStyle = token("--surface");
	context.fillRect(0, 0, sheet.width, sheet.height);
	context.fillStyle = token("--ink");
	context.font = `600 14px ${token("--font")}`;
	context.fillText(`${title} · ${document.title}`, MARGIN, 22);
	for (const canvas of element.querySelectorAll("canvas")) {
		const place = canvas.getBoundingClientRect();
		if (place.width === 0 || place.height === 0) continue;
		context.drawImage(canvas, place.left - box.left + MARGIN, place.top - box.top + TITLE, place.width, place.height);
	}
	return sheet;
}

function fileName(text: string): string {
	return text.replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 80) || "fathom";
}
