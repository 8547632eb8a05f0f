import { describe, expect, it } from "vitest";
import {
	accessesOf,
	busiest,
	cellAt,
	cellSpan,
	leastSide,
	nearest,
	neighbor,
	type OffsetColumns,
	uniqueBytes,
} from "./accesses";

function answer(
	meta: Record<string, number | string>,
	columns: Record<string, number[]>,
	write: boolean[] = [],
): OffsetColumns {
	const rows = Object.values(columns)[0]?.length ?? 0;
	return {
		rows,
		f64: (name) => Float64Array.from(columns[name] ?? new Array<number>(rows).fill(Number.NaN)),
		flags: (name) => (name === "write" ? write : []),
		metaNumber: (name) => (typeof meta[name] === "number" ? meta[name] : null),
		metaText: (name) => (typeof meta[name] === "string" ? meta[name] : null),
	};
}

const POINTS = answer(
	{ mode: "points", offset_from: 0, offset_to: 4096, read_bytes: 300, read_unique_bytes: 200 },
	{
		t: [0, 10, 20, 30],
		dur: [5, 5, 5, 5],
		file_offset: [0, 100, 200, 4000],
		bytes: [100, 100, 100, 96],
		tid: [1, 1, 1, 2],
		rid: [11, 12, 13, 14],
	},
	[false, false, false, true],
);

function points() {
	const { what } = accessesOf(POINTS);
	if (what.mode !== "points") throw new Error("no points");
	return what;
}

describe("points", () => {
	it("come with the figures of the window", () => {
		const made = accessesOf(POINTS);
		expect(made.offsets).toEqual({ from: 0, to: 4096 });
		expect(made.figures.read).toBe(300);
		expect(made.figures.readUnique).toBe(300);
		expect(made.figures.writtenUnique).toBe(96);
		expect(made.figures.written).toBeNaN();
	});
	it("are found within a few pixels, or not at all", () => {
		expect(nearest(points(), 12, 150, 1, 10)).toBe(1);
		expect(nearest(points(), 18, 260, 1, 10)).toBe(2);
		expect(nearest(points(), 33, 4050, 1, 10)).toBe(3);
		expect(nearest(points(), 12, 1500, 1, 10)).toBe(-1);
	});
	it("that are long are found along all of their time", () => {
		const what = points();
		what.dur[3] = 1000;
		expect(nearest(what, 900, 4050, 1, 10)).toBe(3);
	});
	it("are larger for more bytes, within bounds", () => {
		expect(leastSide(1)).toBe(2);
		expect(leastSide(4096)).toBeGreaterThan(leastSide(1024));
		expect(leastSide(1e12)).toBe(9);
		expect(leastSide(Number.NaN)).toBe(2);
	});
	it("count page faults in no sum of bytes", () => {
		const faults = { ...answer({ mode: "points", faults: 1 }, { file_offset: [0, 8192], bytes: [4096, Number.NaN] }) };
		faults.flags = (name) => (name === "fault" ? [false, true] : [false, false]);
		const { figures } = accessesOf(faults);
		expect(figures.faults).toBe(1);
		expect(figures.readUnique).toBe(4096);
	});
	it("have patterns as far as the server has counted them", () => {
		const meta = { mode: "grid", read_sequential: 0.25, read_forward: 0.5, read_backward: 0.4, read_passes: 3 };
		const { figures } = accessesOf(answer(meta, {}));
		expect(figures.reads).toEqual({ sequential: 0.25, forward: 0.5, backward: 0.4, passes: 3 });
		expect(figures.writes).toBeNull();
		expect(figures.touches).toBeNull();
		const touched = { mode: "grid", fault_forward: 0, fault_backward: 1, fault_passes: 2 };
		expect(accessesOf(answer(touched, {})).figures.touches).toEqual({ forward: 0, backward: 1, passes: 2 });
	});
	it("count each byte once", () => {
		const what = points();
		what.offset.set([0, 50, 20, 0]);
		expect(uniqueBytes(what, false)).toBe(150);
		expect(uniqueBytes(what, true)).toBe(96);
	});
	it("count the bytes of each file", () => {
		const what = points();
		what.file = Float64Array.from([8, 33, 8, 33]);
		what.offset.set([0, 0, 50, 0]);
		expect(uniqueBytes(what, false)).toBe(250);
	});
	it("follow each other in time", () => {
		expect(neighbor(points(), null, 1)).toBe(0);
		expect(neighbor(points(), 12, 1)).toBe(2);
		expect(neighbor(points(), 14, 1)).toBe(-1);
		expect(neighbor(points(), 999, -1)).toBe(3);
	});
	it("know who did most", () => {
		expect(busiest(points())).toEqual([1, 2]);
	});
});

describe("cells", () => {
	const made = accessesOf(
		answer(
			{ mode: "grid", width: 4, height: 2, from: 100, to: 500, offset_from: 1000, offset_to: 3000 },
			{ x: [0, 3], y: [1, 0], reads: [5, 0], writes: [0, 7], max_ns: [9, 9], tid: [1, 2] },
		),
	).what;
	if (made.mode !== "grid") throw new Error("no grid");
	it("are found by time and offset", () => {
		expect(cellAt(made, 150, 2500)).toBe(0);
		expect(cellAt(made, 499, 1500)).toBe(1);
		expect(cellAt(made, 250, 2500)).toBe(-1);
		expect(cellAt(made, 99, 2500)).toBe(-1);
		expect(cellAt(made, 150, 3500)).toBe(-1);
	});
	it("stand for a part of time and of the file", () => {
		expect(cellSpan(made, 1)).toEqual({ time: { from: 400, to: 500 }, offsets: { from: 1000, to: 2000 } });
	});
	it("know who did most", () => {
		expect(busiest(made)).toEqual([2, 1]);
	});
});
