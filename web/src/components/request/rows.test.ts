import { describe, expect, it } from "vitest";
import type { RequestAnswer, Row } from "../../api/types";
import { linesOf, phasesOf, spanOf } from "./rows";

const row: Row = { rid: 5, syscall: "fsync", ts_ns: 1000, dur_ns: 100, tid: 1 };
const slice = (layer: string, name: string, ts_ns: number, dur_ns: number, self_ns: number, depth: number): Row => ({
	layer,
	name,
	ts_ns,
	dur_ns,
	self_ns,
	depth,
});

function answer(slices: Row[], waits: Row[] = []): RequestAnswer {
	return {
		table: "syscalls",
		row,
		slices,
		waits,
		irqs: [],
		block: [],
		counters: [],
		neighbors: { before: [], after: [] },
	};
}

describe("a request's lines", () => {
	it("hold every visit, and their own times add up to the request", () => {
		const lines = linesOf(
			answer(
				[
					slice("syscall", "fsync", 1000, 100, 30, 0),
					slice("sched", "io", 1010, 30, 30, 2),
					slice("fs", "jbd2", 1005, 60, 10, 1),
					slice("sched", "io", 1050, 30, 30, 2),
				],
				[{ ts_ns: 1050, waker: "jbd2/vda-8" }],
			),
		);
		expect(lines.map((l) => [l.layer, l.visits.length, l.self])).toEqual([
			["syscall", 1, 30],
			["fs", 1, 10],
			["sched", 2, 60],
		]);
		expect(lines.reduce((sum, l) => sum + (l.self ?? 0), 0)).toBe(100);
		expect(lines[2]?.visits[1]?.note).toBe("woken by jbd2/vda-8");
	});
	it("are the call alone when nothing was seen below it", () => {
		expect(linesOf(answer([]))).toEqual([
			{ layer: "syscall", name: "fsync", depth: 0, visits: [{ t: 1000, dur: 100, note: "" }], self: 100 },
		]);
	});
	it("have a width also when the call took no time that was seen", () => {
		expect(spanOf({ ...row, dur_ns: null })).toEqual({ from: 1000, to: 1001 });
	});
});

it("turns the times of a request to a device into phases, with those that were not seen left out", () => {
	const phases = phasesOf({
		queued_at_ns: 10,
		started_at_ns: 12,
		inserted_at_ns: null,
		issued_at_ns: 20,
		completed_at_ns: 90,
	});
	expect(phases.map((p) => [p.t, p.dur, p.layer])).toEqual([
		[10, 2, "block"],
		[12, 8, "block"],
		[20, 70, "device"],
	]);
});
