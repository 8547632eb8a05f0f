import { describe, expect, it } from "vitest";
import type { PathAnswer, PathKind, PathRest, PathSegment } from "../../api/types";
import { piecesOf, plainOf, rowsOf, sameThread, shapesOf, summaryOf, sumOf } from "./chain";

const segment = (t: number, dur_ns: number, tid: number, kind: PathKind, wakes: number | null = null): PathSegment => ({
	t,
	dur_ns,
	depth: tid === 1 ? 0 : 1,
	host: null,
	tid,
	comm: "a",
	kind,
	reason: null,
	syscall: null,
	rid: null,
	path: null,
	culprit: null,
	device: null,
	wakes: wakes === null ? null : { host: null, tid: wakes },
});

function answer(segments: PathSegment[], rest: PathRest[] = []): PathAnswer {
	const all = [...segments, ...rest];
	return {
		why_not: null,
		headline: "",
		host: null,
		tid: 1,
		from: 0,
		dur_ns: all.reduce((a, s) => a + s.dur_ns, 0),
		segments,
		rest,
		total: segments.length + rest.reduce((a, r) => a + r.segments, 0),
		threads: [
			{ host: null, tid: 1, comm: "a", dur_ns: 0 },
			{ host: null, tid: 2, comm: "a", dur_ns: 0 },
		],
		notes: [],
	};
}

const some = answer(
	[
		segment(0, 100, 1, "running"),
		segment(105, 3, 2, "device"),
		segment(108, 50, 2, "queue", 1),
		segment(162, 8, 1, "runnable"),
	],
	[
		{
			t: 100,
			dur_ns: 5,
			segments: 4,
			host: null,
			tid: 2,
			parts: [
				{ kind: "running", dur_ns: 4 },
				{ kind: "waiting", dur_ns: 1 },
			],
		},
		{ t: 158, dur_ns: 4, segments: 2, host: null, tid: null, parts: [{ kind: "running", dur_ns: 4 }] },
	],
);

describe("a critical path", () => {
	it("tells threads of two hosts with one id from each other", () => {
		const there = { ...segment(0, 10, 1, "running"), host: "db" };
		const here = { ...segment(10, 10, 1, "running"), host: "web" };
		const both = piecesOf(answer([there, here]));
		expect(both.map((piece) => sameThread(piece, { host: "web", tid: 1 }))).toEqual([false, true]);
		expect(plainOf({ ...answer([there, here]), host: "web" })).toBeNull();
		expect(plainOf({ ...answer([here]), host: "web" })).toContain("waited for nothing");
	});

	it("has shapes that add up, however narrow its pieces are", () => {
		const pieces = piecesOf(some);
		const all = sumOf(pieces.flatMap((piece) => piece.parts));
		for (const pixel of [0, 1, 6, 9, 60, 1000]) {
			const shapes = shapesOf(pieces, pixel);
			expect(sumOf(shapes.flatMap((shape) => shape.parts))).toEqual(all);
			expect(shapes.reduce((a, shape) => a + shape.count, 0)).toBe(some.total);
			expect(shapes.reduce((a, shape) => a + shape.width, 0)).toBe(170);
		}
		expect(shapesOf(pieces, 0)).toHaveLength(6);
		// A wide piece stays on its own.
		expect(shapesOf(pieces, 10).map((s) => [s.t, s.width, s.count])).toEqual([
			[0, 100, 1],
			[100, 8, 5],
			[108, 50, 1],
			[158, 12, 3],
		]);
	});

	it("keeps gaps of a thread that can be seen", () => {
		const lane = [segment(0, 1, 1, "running"), segment(4, 1, 1, "running"), segment(50, 1, 1, "running")];
		const shapes = shapesOf(piecesOf(answer(lane)), 10);
		expect(shapes.map((s) => [s.t, s.width, s.dur])).toEqual([
			[0, 5, 2],
			[50, 1, 1],
		]);
	});

	it("has rows of the longest, and of the others between them", () => {
		const rows = rowsOf(piecesOf(some), 2);
		expect(rows.map((row) => [row.t, row.dur, row.count, row.segment?.kind ?? null])).toEqual([
			[0, 100, 1, "running"],
			[100, 8, 5, null],
			[108, 50, 1, "queue"],
			[158, 12, 3, null],
		]);
		expect(rowsOf(piecesOf(some), 100).reduce((a, row) => a + row.dur, 0)).toBe(170);
	});

	it("is a sentence when there is nothing to see", () => {
		expect(plainOf(some)).toBe(null);
		expect(plainOf({ ...answer([]), why_not: "No waits." })).toBe("No waits.");
		expect(plainOf(answer([segment(0, 5, 1, "running"), segment(5, 5, 1, "running")]))).toContain("10 ns");
		expect(plainOf(answer([segment(0, 5, 1, "waiting")]))).toBe(null);
		expect(plainOf(answer([segment(0, 5, 2, "running")]))).toBe(null);
	});

	it("is told in words", () => {
		expect(summaryOf(some)).toBe(
			"Critical path of 170 ns over 2 threads: on a CPU 108 ns (63.5 %), in the device's queue 50 ns (29.4 %), " +
				"waiting for a CPU 8 ns (4.71 %), in the device 3 ns (1.76 %), waiting for something else 1 ns (0.59 %)",
		);
	});
});
