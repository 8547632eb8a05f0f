import { tableFromArrays, tableToIPC } from "apache-arrow";
import { describe, expect, it } from "vitest";
import { readAnyFrame } from "../../api/anyipc";
import { Columns } from "../../api/arrow";
import { cellText, csv, sortedRows, tsv, widths } from "./cells";

function result(columns: Record<string, unknown[] | Float64Array>): Columns {
	return new Columns(readAnyFrame(tableToIPC(tableFromArrays(columns as Record<string, unknown[]>), "stream")));
}

const DATA = result({
	n: Float64Array.from([3, 1, 2]),
	who: ["b", null, "a"],
});

describe("cells", () => {
	it("are texts with all digits, and null", () => {
		expect(cellText(DATA, "n", 0)).toBe("3");
		expect(cellText(DATA, "who", 1)).toBeNull();
		expect(cellText(result({ big: Float64Array.from([9007199254740991]) }), "big", 0)).toBe("9007199254740991");
	});
	it("sort, with nulls last both ways", () => {
		expect([...sortedRows(DATA, null)]).toEqual([0, 1, 2]);
		expect([...sortedRows(DATA, { name: "n", down: false })]).toEqual([1, 2, 0]);
		expect([...sortedRows(DATA, { name: "who", down: false })]).toEqual([2, 0, 1]);
		expect([...sortedRows(DATA, { name: "who", down: true })]).toEqual([0, 2, 1]);
	});
	it("are copied with tabs between and none within", () => {
		expect(tsv(result({ a: ["x\ty", "p\nq", "=1+2"] }), [0, 1, 2])).toBe("a\nx y\np q\n'=1+2\n");
	});
	it("are written as CSV that a spreadsheet does not run", () => {
		const text = csv(result({ name: ['=HYPERLINK("x")', 'say "hi", you', "-1.5", "+cmd", "-1+cmd|' /C calc'!A0"] }));
		expect(text.split("\r\n")).toEqual([
			"name",
			'"\'=HYPERLINK(""x"")"',
			'"say ""hi"", you"',
			"-1.5",
			"'+cmd",
			"'-1+cmd|' /C calc'!A0",
			"",
		]);
	});
	it("have columns as wide as they need, within bounds", () => {
		const [narrow = 0, wide = 0] = widths(result({ a: ["1"], b: ["x".repeat(500)] }));
		expect(narrow).toBe(64);
		expect(wide).toBe(460);
	});
});
