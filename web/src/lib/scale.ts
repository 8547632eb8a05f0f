// Windows of time and the scales of plots.

/** A span of time, nanoseconds since the session's start. */
export interface Span {
	from: number;
	to: number;
}

/** Nothing is shown narrower than this: one call may take as little. */
export const MIN_SPAN_NS = 20;

/** A position between 0 and `width` for a time, and back. */
export function toPixel(t: number, span: Span, width: number): number {
	return ((t - span.from) / (span.to - span.from)) * width;
}

export function toTime(pixel: number, span: Span, width: number): number {
	return span.from + (pixel / width) * (span.to - span.from);
}

/** Keeps a window inside the session, and no narrower than `MIN_SPAN_NS`; its width is kept where it fits. */
export function clampSpan(span: Span, bounds: Span): Span {
	const room = Math.max(bounds.to - bounds.from, MIN_SPAN_NS);
	const width = Math.min(Math.max(span.to - span.from, MIN_SPAN_NS), room);
	const center = (span.from + span.to) / 2;
	let from = span.to - span.from === width ? span.from : center - width / 2;
	from = Math.min(Math.max(from, bounds.from), bounds.from + room - width);
	return { from, to: from + width };
}

/** Zooms by `factor` (below 1 goes in) around a time that keeps its place on the screen. */
export function zoomSpan(span: Span, anchor: number, factor: number, bounds: Span): Span {
	const width = span.to - span.from;
	const room = Math.max(bounds.to - bounds.from, MIN_SPAN_NS);
	const wanted = Math.min(Math.max(width * factor, MIN_SPAN_NS), room);
	const share = width > 0 ? (anchor - span.from) / width : 0.5;
	const from = anchor - wanted * share;
	return clampSpan({ from, to: from + wanted }, bounds);
}

/** Moves a window by a share of its width. */
export function panSpan(span: Span, share: number, bounds: Span): Span {
	const by = (span.to - span.from) * share;
	return clampSpan({ from: span.from + by, to: span.to + by }, bounds);
}

/** The smallest power of two, at least 1, that is not below `value`. */
export function powerOfTwo(value: number): number {
	return value <= 1 ? 1 : 2 ** Math.ceil(Math.log2(value) - 1e-9);
}

const SECOND = 1e9;
const STEPS_ABOVE_A_SECOND = [
	1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400,
];

/** The distance of ticks on an axis of time that has room for about `room` of them. */
export function timeStep(span: Span, room: number): number {
	const wanted = (span.to - span.from) / Math.max(room, 1);
	if (wanted <= 1) return 1;
	if (wanted <= SECOND / 2) return niceStep(wanted);
	for (const step of STEPS_ABOVE_A_SECOND) if (step * SECOND >= wanted) return step * SECOND;
	return Math.ceil(wanted / (86400 * SECOND)) * 86400 * SECOND;
}

/** 1, 2 or 5 times a power of ten, not below `wanted`. */
export function niceStep(wanted: number): number {
	if (!(wanted > 0)) return 1;
	const power = 10 ** Math.floor(Math.log10(wanted));
	for (const factor of [1, 2, 5]) if (power * factor >= wanted * (1 - 1e-9)) return power * factor;
	return power * 10;
}

/** A power of two, not below `wanted`: distances of ticks for bytes. */
export function binaryStep(wanted: number): number {
	return wanted > 0 ? 2 ** Math.ceil(Math.log2(wanted) - 1e-9) : 1;
}

/** The multiples of `step` inside a span. */
export function ticks(span: Span, step: number): number[] {
	const found: number[] = [];
	for (let i = Math.ceil(span.from / step); i * step <= span.to; i += 1) found.push(i * step);
	return found;
}

/** Which of a histogram's powers of two holds the value below which `share` of the calls are; null when empty. */
export function quantile(counts: ArrayLike<number>, share: number): number | null {
	let total = 0;
	for (let i = 0; i < counts.length; i += 1) total += counts[i] ?? 0;
	if (total <= 0) return null;
	const wanted = share * total;
	let sum = 0;
	for (let i = 0; i < counts.length; i += 1) {
		const here = counts[i] ?? 0;
		if (here > 0 && sum + here >= wanted) {
			// Between the bounds in proportion, on the logarithmic scale that the buckets have.
			const part = (wanted - sum) / here;
			return 2 ** (i + Math.min(Math.max(part, 0), 1));
		}
		sum += here;
	}
	return null;
}
