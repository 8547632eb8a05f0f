// Wheel, drag and held keys, as Perfetto has them: what they do to the window and the scroll position.

import { clampSpan, panSpan, type Span, toTime, zoomSpan } from "../../lib/scale";
import { NAME_WIDTH } from "./paint";

export interface Surface {
	element: HTMLElement;
	/** A drag that begins above this height selects. */
	ruler: number;
	/** Held keys move the window: of one surface of a view only. */
	keys: boolean;
	span: () => Span;
	bounds: () => Span;
	width: () => number;
	/** How far down the lanes can be scrolled. */
	room: () => number;
	scroll: () => number;
	show: (span: Span) => void;
	scrollTo: (scroll: number) => void;
	mark: (span: Span | null) => void;
	hover: (x: number, y: number) => void;
	leave: () => void;
	click: (x: number, y: number) => void;
	/** A selection by drag is done: one step in the history. */
	choose: (span: Span) => void;
}

/** A wheel's step of 100 changes the width by about a fifth. */
const WHEEL = 0.002;
/** Zooming and moving by held keys, per millisecond. */
const KEY_ZOOM = 0.0032;
const KEY_PAN = 0.0012;
const CLICK = 4;

const HELD: Readonly<Record<string, "in" | "out" | "left" | "right">> = {
	w: "in",
	s: "out",
	a: "left",
	d: "right",
	ArrowLeft: "left",
	ArrowRight: "right",
};

/** Listens until the returned function is called. */
export function listen(surface: Surface): () => void {
	const { element } = surface;
	const stop = new AbortController();
	const on = { signal: stop.signal };
	const place = (event: MouseEvent) => {
		const box = element.getBoundingClientRect();
		return { x: event.clientX - box.left, y: event.clientY - box.top };
	};
	const timeAt = (x: number) => toTime(x - NAME_WIDTH, surface.span(), surface.width() - NAME_WIDTH);

	element.addEventListener(
		"wheel",
		(event) => {
			event.preventDefault();
			const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
			const dx = event.deltaX * unit;
			const dy = event.deltaY * unit;
			const { x } = place(event);
			if (event.shiftKey || Math.abs(dx) > Math.abs(dy)) {
				const by = Math.abs(dx) > Math.abs(dy) ? dx : dy;
				surface.show(panSpan(surface.span(), by / (surface.width() - NAME_WIDTH), surface.bounds()));
				return;
			}
			// Where lanes do not fit the screen the wheel scrolls them, as it does over their names.
			if (!event.ctrlKey && !event.metaKey && (surface.room() > 0 || x < NAME_WIDTH)) {
				surface.scrollTo(surface.scroll() + dy);
				return;
			}
			surface.show(zoomSpan(surface.span(), timeAt(Math.max(x, NAME_WIDTH)), Math.exp(dy * WHEEL), surface.bounds()));
		},
		{ passive: false, ...on },
	);

	let held: { x: number; y: number; span: Span; scroll: number; select: boolean; moved: boolean } | null = null;
	element.addEventListener(
		"pointerdown",
		(event) => {
			if (event.button !== 0) return;
			const { x, y } = place(event);
			// The scroll bar.
			if (x >= surface.width()) return;
			element.setPointerCapture(event.pointerId);
			held = {
				x,
				y,
				span: surface.span(),
				scroll: surface.scroll(),
				select: event.shiftKey || y < surface.ruler,
				moved: false,
			};
		},
		on,
	);
	element.addEventListener(
		"pointermove",
		(event) => {
			const { x, y } = place(event);
			if (!held) {
				surface.hover(x, y);
				return;
			}
			if (!held.moved && Math.abs(x - held.x) < CLICK && Math.abs(y - held.y) < CLICK) return;
			held.moved = true;
			surface.leave();
			if (held.select) {
				const a = timeAt(held.x);
				const b = timeAt(x);
				surface.mark({ from: Math.min(a, b), to: Math.max(a, b) });
				return;
			}
			const by = ((held.x - x) / (surface.width() - NAME_WIDTH)) * (held.span.to - held.span.from);
			surface.show(clampSpan({ from: held.span.from + by, to: held.span.to + by }, surface.bounds()));
			surface.scrollTo(held.scroll + held.y - y);
		},
		on,
	);
	const drop = (event: PointerEvent) => {
		const was = held;
		held = null;
		if (!was) return;
		const { x, y } = place(event);
		if (!was.moved) {
			surface.click(x, y);
			return;
		}
		if (!was.select) return;
		surface.mark(null);
		const a = timeAt(was.x);
		const b = timeAt(x);
		surface.choose(clampSpan({ from: Math.min(a, b), to: Math.max(a, b) }, surface.bounds()));
	};
	element.addEventListener("pointerup", drop, on);
	element.addEventListener(
		"pointercancel",
		() => {
			held = null;
			surface.mark(null);
		},
		on,
	);
	element.addEventListener("pointerleave", () => surface.leave(), on);

	// Keys that are held move the window smoothly; a tap is a small step.
	const down = new Map<string, number>();
	let frame = 0;
	let last = 0;
	let pointer: number | null = null;
	element.addEventListener(
		"pointermove",
		(event) => {
			pointer = place(event).x;
		},
		on,
	);
	const turn = (now: number) => {
		const passed = Math.min(64, last === 0 ? 16 : now - last);
		last = now;
		let span = surface.span();
		for (const key of down.keys()) {
			const what = HELD[key];
			const x = pointer !== null && pointer > NAME_WIDTH ? pointer : (surface.width() + NAME_WIDTH) / 2;
			if (what === "in") span = zoomSpan(span, timeAt(x), Math.exp(-passed * KEY_ZOOM), surface.bounds());
			if (what === "out") span = zoomSpan(span, timeAt(x), Math.exp(passed * KEY_ZOOM), surface.bounds());
			if (what === "left") span = panSpan(span, -passed * KEY_PAN, surface.bounds());
			if (what === "right") span = panSpan(span, passed * KEY_PAN, surface.bounds());
		}
		surface.show(span);
		frame = down.size > 0 ? requestAnimationFrame(turn) : 0;
	};
	if (!surface.keys) return () => stop.abort();
	window.addEventListener(
		"keydown",
		(event) => {
			const typing = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
			if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
			if (event.key === "ArrowUp" || event.key === "ArrowDown") {
				event.preventDefault();
				surface.scrollTo(surface.scroll() + (event.key === "ArrowDown" ? 56 : -56));
				return;
			}
			if (!(event.key in HELD)) return;
			event.preventDefault();
			event.stopPropagation();
			if (!down.has(event.key)) down.set(event.key, event.timeStamp);
			if (frame === 0) {
				last = 0;
				frame = requestAnimationFrame(turn);
			}
		},
		// Before the keys of the page, which move in steps.
		{ capture: true, ...on },
	);
	window.addEventListener("keyup", (event) => down.delete(event.key), on);
	window.addEventListener("blur", () => down.clear(), on);
	return () => {
		stop.abort();
		if (frame !== 0) cancelAnimationFrame(frame);
	};
}
