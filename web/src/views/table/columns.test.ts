import { expect, it } from "vitest";
import { COLUMNS, cell, chosenColumns, nextSort, STANDARD, sumsText, widthsOf } from "./columns";

it("takes the columns of an address that exist, or the standard ones", () => {
	expect(chosenColumns("").map((c) => c.id)).toEqual(STANDARD);
	expect(chosenColumns("path,rid,nonsense").map((c) => c.id)).toEqual(["path", "rid"]);
	expect(chosenColumns("nonsense").map((c) => c.id)).toEqual(STANDARD);
});

it("turns the order round with every click, and back to time", () => {
	expect(nextSort("ts_ns", "dur_ns")).toBe("-dur_ns");
	expect(nextSort("-dur_ns", "dur_ns")).toBe("dur_ns");
	expect(nextSort("dur_ns", "dur_ns")).toBe("ts_ns");
	expect(nextSort("ts_ns", "ts_ns")).toBe("-ts_ns");
});

it("keeps a row on a line when it is copied", () => {
	expect(cell("a\tb\nc\\d")).toBe("a\\tb\\nc\\\\d");
	expect(cell(null)).toBe("");
});

it("sums selected rows up", () => {
	const sums = { rows: 3, known: 3, time: 3e6, longest: 2e6, bytes: 4096, errors: 1 };
	expect(sumsText(sums)).toBe("3 selected · 3 ms in calls · mean 1 ms · longest 2 ms · 4 KiB · 1 error");
	expect(sumsText({ ...sums, known: 2, errors: 0 })).toContain("of 2 loaded rows");
});

it("makes a path fit that would be cut at the edge", () => {
	const columns = COLUMNS.filter(({ id }) => ["ts_ns", "path", "flags"].includes(id));
	expect(widthsOf(columns, 1000)).toEqual([152, 220, 180]);
	expect(widthsOf(columns, 352)).toEqual([152, 200, 180]);
	expect(widthsOf(columns, 250)).toEqual([152, 220, 180]);
	// The last column is whole, as long as the path leaves it room.
	expect(widthsOf(columns, 500)).toEqual([152, 168, 180]);
});
