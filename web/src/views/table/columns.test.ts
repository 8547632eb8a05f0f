import { expect, it } from "vitest";
import { cell, chosenColumns, nextSort, STANDARD } from "./columns";

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
