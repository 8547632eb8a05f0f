import { describe, expect, it } from "vitest";
import {
	clampSpan,
	MIN_SPAN_NS,
	panSpan,
	powerOfTwo,
	quantile,
	ticks,
	timeStep,
	toPixel,
	toTime,
	zoomSpan,
} from "./scale";

const bounds = { from: 0, to: 1e12 };

describe("windows", () => {
	it("keep the time below the pointer where it is while zooming", () => {
		const span = { from: 100e9, to: 200e9 };
		const anchor = 130e9;
		const next = zoomSpan(span, anchor, 0.5, bounds);
		expect(toPixel(anchor, next, 1000)).toBeCloseTo(toPixel(anchor, span, 1000), 6);
		expect(next.to - next.from).toBe(50e9);
	});
	it("stop at the narrowest, exactly, far into a session", () => {
		let span = { from: 9e11, to: 9.5e11 };
		for (let i = 0; i < 200; i += 1) span = zoomSpan(span, 9.1e11, 0.8, bounds);
		expect(span.to - span.from).toBeCloseTo(MIN_SPAN_NS, 3);
		expect(span.from).toBeLessThanOrEqual(9.1e11);
		expect(span.to).toBeGreaterThanOrEqual(9.1e11);
	});
	it("stay inside the session and keep their width", () => {
		expect(panSpan({ from: 10, to: 110 }, -1, { from: 0, to: 1000 })).toEqual({ from: 0, to: 100 });
		expect(panSpan({ from: 890, to: 990 }, 1, { from: 0, to: 1000 })).toEqual({ from: 900, to: 1000 });
		expect(clampSpan({ from: -500, to: 5000 }, { from: 0, to: 1000 })).toEqual({ from: 0, to: 1000 });
	});
	it("turn pixels into times and back", () => {
		const span = { from: 5e9, to: 6e9 };
		expect(toPixel(toTime(321, span, 1280), span, 1280)).toBeCloseTo(321, 6);
	});
});

describe("ticks", () => {
	it("are 1, 2 or 5 times a power of ten below a second", () => {
		expect(timeStep({ from: 0, to: 1000 }, 8)).toBe(200);
		expect(timeStep({ from: 0, to: 3e6 }, 10)).toBe(500_000);
		expect(timeStep({ from: 0, to: 10 }, 20)).toBe(1);
	});
	it("are what clocks show above", () => {
		expect(timeStep({ from: 0, to: 100e9 }, 8)).toBe(15e9);
		expect(timeStep({ from: 0, to: 3600e9 }, 8)).toBe(600e9);
		expect(timeStep({ from: 0, to: 40 * 86400e9 }, 10)).toBe(4 * 86400e9);
	});
	it("are multiples of their distance, inside the window", () => {
		expect(ticks({ from: 950, to: 1210 }, 100)).toEqual([1000, 1100, 1200]);
	});
});

describe("histograms", () => {
	it("tell the value below which a share of the calls are", () => {
		const counts = new Float64Array(12);
		counts[10] = 100;
		expect(quantile(counts, 0.5)).toBeCloseTo(2 ** 10.5, 6);
		counts[11] = 100;
		expect(quantile(counts, 0.99)).toBeGreaterThan(2 ** 11);
		expect(quantile(counts, 0.25)).toBeLessThan(2 ** 11);
	});
	it("say nothing about no calls", () => {
		expect(quantile(new Float64Array(12), 0.5)).toBeNull();
	});
});

it("rounds up to powers of two", () => {
	expect([0.3, 1, 3, 4, 1000].map(powerOfTwo)).toEqual([1, 1, 4, 4, 1024]);
});
