import { describe, expect, it } from "vitest";
import type { Change, DiffRow, Figure } from "../../api/compare";
import { changed, changeText, chosenRows, hasChanged, impact, metricsOf, precise, shown, slowOf } from "./words";

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
		[400, 4, "÷ 100"],
		[18.5e9, 0.4e6, "nearly gone"],
		[4, 4000, "× 1000"],
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

it("a percentile of few calls is the longest of them", () => {
	const [p99, longest] = [figure("p99", 5e6, 9e6, "worse"), figure("longest", 7e6, 8e6, "not_comparable")];
	const calls = figure("calls", 2000, 40, "differs");
	expect(slowOf(row("fsync", [calls, p99]))).toEqual({ name: "p99 of fsync", figure: p99 });
	const few = row("fsync", [calls, { ...p99, after: null }, longest]);
	expect(slowOf(few)).toEqual({ name: "longest fsync, as a side has only 40", figure: longest });
	const gone = { ...p99, after: null };
	expect(slowOf(row("fsync", [calls, gone]))).toEqual({ name: "p99 of fsync", figure: gone });
	expect(slowOf(row("fsync", [calls]))).toBeNull();
});

describe("what changed", () => {
	const change: Change = {
		verdict: "worse",
		metric: "p99",
		subject: "fdatasync",
		table: "syscalls",
		before: 7.5e6,
		after: 215e6,
		change: 27.7,
		weight: 0.5,
		why: "",
		fails: false,
		impact_ns: 3.95e9,
		moves: ["median 12 % shorter", "p99 29 times as long"],
		mostly_on: "/data/app.db",
		minor: false,
	};
	it("about durations is which way each of them moved", () => {
		expect(changeText(change)).toBe("fdatasync (mostly on /data/app.db): median 12 % shorter, p99 29 times as long");
		expect(changeText({ ...change, moves: [], mostly_on: null })).toBe("p99 of fdatasync: 7.5 ms → 215 ms");
	});
	it("costs time, or saves it", () => {
		expect(impact(change)).toBe("+3.95 s of I/O time");
		expect(impact({ impact_ns: -2000 })).toBe("−2 µs of I/O time");
		expect(impact({ impact_ns: null })).toBe("");
	});
});

describe("rows", () => {
	const rows = [
		row("read", [figure("calls", 10, 10, "same")], { on: "/a" }),
		row("write", [figure("calls", 10, 90, "worse"), figure("time", 1, 2, "within_noise")]),
		row("fsync", [figure("calls", 0, 5, "not_comparable")], { status: "new" }),
	];
	it("that changed are those beyond noise, and those of one side", () => {
		expect(rows.map(hasChanged)).toEqual([false, true, true]);
		expect(hasChanged(row("sync", [figure("p50", 2, 1, "mixed")]))).toBe(true);
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
