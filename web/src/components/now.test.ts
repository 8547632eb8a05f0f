import { expect, it } from "vitest";
import { nowAt } from "./now";

it("is the newest row, or the end of what was answered", () => {
	const span = { from: 100, to: 200 };
	expect(nowAt(span, 200, undefined)).toBe(1);
	expect(nowAt(span, 200, 150)).toBe(0.5);
	expect(nowAt(span, 120, 150)).toBe(0.2);
	expect(nowAt(span, 90, undefined)).toBe(null);
	expect(nowAt(span, 300, undefined)).toBe(null);
});
