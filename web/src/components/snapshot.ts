// The view as a picture of a size that fits posts and slides: with session, view, window, filter and host above it.

import { token } from "../state/theme";

export const PICTURE = { width: 1200, height: 675 } as const;
const HEAD = 64;
const FOOT = 28;
const MARGIN = 20;

export interface Caption {
	/** What is shown, in a few words. */
	title: string;
	/** Window, filter. */
	what: string;
	/** Host, kernel, command. */
	where: string;
}

/** Draws an element as it is on the screen, scaled to fit, with a caption. */
export async function snapshot(element: HTMLElement, caption: Caption): Promise<Blob> {
	const sheet = document.createElement("canvas");
	// Twice as fine: such pictures are looked at on dense screens, too.
	const ratio = 2;
	sheet.width = PICTURE.width * ratio;
	sheet.height = PICTURE.height * ratio;
	const context = sheet.getContext("2d");
	if (!context) throw new Error("the browser draws no pictures");
	context.scale(ratio, ratio);
	context.fillStyle = token("--ground");
	context.fillRect(0, 0, PICTURE.width, PICTURE.height);
	const font = token("--font");
	const line = (text: string, x: number, y: number, style: string, color: string, room: number) => {
		context.font = `${style} ${font}`;
		context.fillStyle = color;
		context.fillText(fitted(context, text, room), x, y);
	};
	const room = PICTURE.width - 2 * MARGIN;
	line(caption.title, MARGIN, 30, "600 20px", token("--ink"), room);
	line(caption.what, MARGIN, 52, "14px", token("--ink-2"), room);
	line(caption.where, MARGIN, PICTURE.height - 10, "12px", token("--ink-3"), room - 80);
	line("fathom", PICTURE.width - MARGIN - 48, PICTURE.height - 10, "600 12px", token("--ink-2"), 80);
	const picture = await rendered(element);
	const scale = Math.min(room / picture.width, (PICTURE.height - HEAD - FOOT) / picture.height);
	const [wide, tall] = [picture.width * scale, picture.height * scale];
	context.drawImage(picture.image, (PICTURE.width - wide) / 2, HEAD, wide, tall);
	return new Promise((resolve, reject) =>
		sheet.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture cannot be encoded")))),
	);
}

function fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
	if (context.measureText(text).width <= room) return text;
	let short = text;
	while (short.length > 1 && context.measureText(`${short}…`).width > room) short = short.slice(0, -1);
	return `${short}…`;
}

/** Controls do nothing in a picture. */
const CONTROLS = [".button:not([aria-expanded])", ".segmented", ".dropdown", ".field", ".no-picture", ".progress"];

/** What stands in a picture as a whole or not at all. */
const WHOLE = ".panel, .summary";

/** Below a block, so that nothing of the next one's border is seen. */
const EDGE = 4;

/** The height up to which nothing is cut, where that is most of what is in sight. */
export function wholeHeight(height: number, blocks: readonly { top: number; bottom: number }[]): number {
	const cut = blocks.filter((block) => block.top > height / 2 && block.top < height && block.bottom > height + 1);
	return Math.min(height, ...cut.map((block) => block.top - EDGE));
}

/** The page's styles, with the font in them: what is inside a picture fetches nothing. */
async function styles(): Promise<string> {
	const rules = [...document.styleSheets].flatMap((sheet) =>
		[...sheet.cssRules].map((rule) => ({ rule, base: sheet.href ?? document.baseURI })),
	);
	const texts = rules.map(async ({ rule, base }) => {
		if (!(rule instanceof CSSFontFaceRule)) return rule.cssText;
		const source = /url\("?([^")]+)"?\)/.exec(rule.cssText);
		if (!source?.[1]) return rule.cssText;
		try {
			const font = await fetch(new URL(source[1], base));
			return rule.cssText.replace(source[0], `url("${await dataUrl(await font.blob())}")`);
		} catch {
			// The system's font, then.
			return "";
		}
	});
	return (await Promise.all(texts)).join("\n");
}

function dataUrl(blob: Blob): Promise<string> {
	return new Promise((resolve, reject) => {
		const reader = new FileReader();
		reader.onload = () => resolve(String(reader.result));
		reader.onerror = () => reject(reader.error);
		reader.readAsDataURL(blob);
	});
}

/** The element as an image: a copy of it, with the page's styles and plots as pictures, inside SVG. */
async function rendered(element: HTMLElement): Promise<{ image: HTMLImageElement; width: number; height: number }> {
	const width = element.clientWidth;
	const { top } = element.getBoundingClientRect();
	const blocks = [...element.querySelectorAll(WHOLE)].map((block) => {
		const box = block.getBoundingClientRect();
		return { top: box.top - top, bottom: box.bottom - top };
	});
	const height = Math.round(wholeHeight(element.clientHeight, blocks));
	const copy = element.cloneNode(true) as HTMLElement;
	copyState(element, copy);
	const frame = document.createElement("div");
	frame.className = "picture-root";
	frame.dataset["theme"] = document.documentElement.dataset["theme"] ?? "";
	frame.append(copy);
	const css = (await styles())
		.replaceAll(":root", ".picture-root")
		.replace(/(^|[\s,}])(html|body)(?=[\s,{])/g, "$1.picture-root");
	const style = document.createElement("style");
	style.textContent = `${css}
.picture-root { width: ${width}px; height: ${height}px; overflow: hidden; background: ${token("--ground")}; color: ${token("--ink")}; font: 13px ${token("--font")}; }
.picture-root > * { width: ${width}px; height: ${height}px; overflow: hidden; }
.picture-root :is(${CONTROLS.join(", ")}) { display: none; }
.picture-root * { scrollbar-width: none; transition: none; animation: none; }`;
	frame.prepend(style);
	const text = new XMLSerializer().serializeToString(frame);
	// Sizes in rem are those of the page.
	const { fontSize } = getComputedStyle(document.documentElement);
	const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" style="font-size: ${fontSize}"><foreignObject width="100%" height="100%">${text}</foreignObject></svg>`;
	const image = new Image();
	image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
	await image.decode();
	return { image, width, height };
}

/** Of what a copy of elements does not have: pictures on canvases, where boxes are scrolled to, values of fields. */
function copyState(from: Element, to: Element): void {
	if (from instanceof HTMLCanvasElement && from.width > 0 && from.height > 0) {
		const image = document.createElement("img");
		image.src = from.toDataURL();
		image.className = from.className;
		image.style.cssText = from.style.cssText;
		image.style.width = `${from.clientWidth}px`;
		image.style.height = `${from.clientHeight}px`;
		to.replaceWith(image);
		return;
	}
	if (from instanceof HTMLInputElement && to instanceof HTMLInputElement) to.setAttribute("value", from.value);
	const children = [...to.children];
	[...from.children].forEach((child, i) => {
		const copy = children[i];
		if (copy) copyState(child, copy);
	});
	if (from.scrollTop > 0 || from.scrollLeft > 0)
		for (const child of to.children)
			if (child instanceof HTMLElement) {
				child.style.position = "relative";
				child.style.top = `${-from.scrollTop}px`;
				child.style.left = `${-from.scrollLeft}px`;
			}
}
