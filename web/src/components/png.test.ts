import { expect, it } from "vitest";
import { linesOf } from "./png";

it("breaks a legend into lines where there is no more room, and leaves nothing out", () => {
	const entries = ["read", "write", "a name that is wider than the picture", "fsync"].map((label) => ({
		label,
		color: "red",
	}));
	const lines = linesOf(entries, 120, (text) => text.length * 6);
	expect(lines.map((line) => line.map((e) => e.label))).toEqual([["read", "write"], [entries[2]?.label], ["fsync"]]);
	expect(lines[0]?.map((e) => e.x)).toEqual([0, 54]);
	expect(linesOf([], 120, () => 0)).toEqual([]);
});
