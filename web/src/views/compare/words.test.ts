import { describe, expect, it } from "vitest";
import type { DiffRow, Figure } from "../../api/compare";
import { changed, chosenRows, hasChanged, metricsOf, precise, shown } from "./words";

const figure = (metric: Figure["metric"], before: number, after: number, verdict: Figure["verdict"]): Figure => ({
	metric,
	before,
	after,
	change: before === 0 ? null : (after - before) / before,
	verdict,
	why: "",
	p: null,
	interval: null,
	effect: null,
	samples: [[], []],
});

const row = (name: string, figures: Figure[], more: Partial<DiffRow> = {}): DiffRow => ({
	name,
	status: "both",
	figures,
	...more,
});

describe("a change", () => {
	it.each([
		[100, 100, "="],
		[100, 112, "+12 %"],
		[100, 88, "−12 %"],
		[100, 400, "× 4"],
		[400, 100, "÷ 4"],
		[0, 5, "new"],
		[5, 0, "gone"],
	])("from %d to %d is %s", (before, after, text) => {
		expect(changed(figure("calls", before, after, "worse"))).toBe(text);
	});
	it("of what was not measured is nothing", () => {
		expect(changed({ before: null, after: 1, change: null })).toBe("");
	});
});

it("figures have their units", () => {
	expect(shown("time", 1500)).toBe("1.5 µs");
	expect(shown("bytes", 4096)).toBe("4 KiB");
	expect(shown("calls", null)).toBe("–");
	expect(precise("calls", 1.5)).toBe("1.5");
});

describe("rows", () => {
	const rows = [
		row("read", [figure("calls", 10, 10, "same")], { on: "/a" }),
		row("write", [figure("calls", 10, 90, "worse"), figure("time", 1, 2, "within_noise")]),
		row("fsync", [figure("calls", 0, 5, "not_comparable")], { status: "new" }),
	];
	it("that changed are those beyond noise, and those of one side", () => {
		expect(rows.map(hasChanged)).toEqual([false, true, true]);
		expect(chosenRows(rows, "", true, null).map((r) => r.name)).toEqual(["write", "fsync"]);
	});
	it("are found by what goes with them", () => {
		expect(chosenRows(rows, "/A", false, null).map((r) => r.name)).toEqual(["read"]);
	});
	it("sort by how much differs", () => {
		expect(chosenRows(rows, "", false, "calls").map((r) => r.name)).toEqual(["write", "fsync", "read"]);
	});
	it("tell which metrics they have", () => {
		expect(metricsOf(rows)).toEqual(["calls", "time"]);
	});
});
