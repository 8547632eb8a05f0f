import { expect, it } from "vitest";
import { wholeHeight } from "./snapshot";

it("ends before a block that would be cut, unless little were left", () => {
	const first = { top: 10, bottom: 300 };
	expect(wholeHeight(600, [first, { top: 312, bottom: 590 }, { top: 602, bottom: 900 }])).toBe(600);
	expect(wholeHeight(600, [first, { top: 312, bottom: 500 }, { top: 512, bottom: 640 }])).toBe(508);
	expect(wholeHeight(600, [first, { top: 200, bottom: 900 }])).toBe(600);
	expect(wholeHeight(600, [])).toBe(600);
});
