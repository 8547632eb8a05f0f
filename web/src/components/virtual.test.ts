import { describe, expect, it } from "vitest";
import { contentHeight, MOST_PIXELS, scrollFor, sliceAt } from "./virtual";

describe("rows on the screen", () => {
	it("are those of the pixels in a short table", () => {
		expect(sliceAt(0, 100, 1000, 25)).toEqual({ first: 0, end: 5, top: 0 });
		expect(sliceAt(260, 100, 1000, 25)).toEqual({ first: 10, end: 16, top: 250 });
	});
	it("reach the last of a hundred million, and fill the screen there", () => {
		const rows = 100e6;
		expect(contentHeight(rows, 25)).toBe(MOST_PIXELS);
		const last = sliceAt(MOST_PIXELS - 500, 500, rows, 25);
		expect(last.end).toBe(rows);
		expect(last.first).toBeLessThanOrEqual(rows - 20);
		expect(last.top + (last.end - last.first) * 25).toBeGreaterThanOrEqual(MOST_PIXELS - 1);
	});
	it("are few wherever it is scrolled to", () => {
		for (const scroll of [0, 1, 4_000_000, MOST_PIXELS]) {
			const { first, end, top } = sliceAt(scroll, 500, 100e6, 25);
			expect(end - first).toBeLessThanOrEqual(22);
			expect(top).toBeLessThanOrEqual(Math.min(scroll, MOST_PIXELS - 500) + 1e-6);
		}
	});
	it("are none of an empty table", () => {
		expect(sliceAt(0, 500, 0, 25)).toEqual({ first: 0, end: 0, top: 0 });
	});
	it("can be brought to the screen", () => {
		expect(scrollFor(3, 0, 100, 1000, 25)).toBeNull();
		expect(scrollFor(10, 0, 100, 1000, 25)).toBe(175);
		const rows = 100e6;
		const scroll = scrollFor(77_000_000, 0, 500, rows, 25) ?? 0;
		const { first, end } = sliceAt(scroll, 500, rows, 25);
		expect(first).toBeLessThanOrEqual(77_000_000);
		expect(end).toBeGreaterThan(77_000_000);
	});
});
