import { describe, expect, it } from "vitest";
import { parsePart, partText } from "./part";

describe("the part of a file", () => {
	it("is the same after a way through the address", () => {
		for (const part of [
			{ from: 0, to: 4096 },
			{ from: 123_456_789_012, to: 123_456_999_999 },
		]) {
			expect(parsePart(partText(part))).toEqual(part);
		}
	});

	it("is whole bytes, never negative and never too narrow to see", () => {
		expect(partText({ from: -5.5, to: 10.2 })).toBe("0-64");
		expect(partText({ from: 100.7, to: 1000.2 })).toBe("100-1001");
	});

	it("is all of it when the address says nothing sensible", () => {
		for (const text of ["", "5", "9-5", "5-5", "-1-5", "a-b", "1-99999999999999999", "0-1e9"]) {
			expect(parsePart(text)).toBeNull();
		}
	});
});
