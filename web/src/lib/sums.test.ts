import { expect, it } from "vitest";
import { sumsOf } from "./sums";

function tiles(columns: Record<string, unknown[]>) {
	const of = (name: string) => columns[name] ?? [];
	return {
		rows: of("key").length,
		f64: (name: string) => Float64Array.from(of(name) as number[]),
		texts: (name: string) => of(name) as (string | null)[],
		flags: (name: string) => of(name) as boolean[],
		lists: (name: string) => (of(name) as number[][]).map((l) => Float64Array.from(l)),
		has: (name: string) => name in columns,
		metaNumber: () => null,
	};
}

it("adds buckets up by key, tells the rest from calls without a key, and keeps the longest", () => {
	const sums = sumsOf(
		tiles({
			key: ["7", "7", null, null],
			label: ["/a", "/a", null, null],
			rest: [false, false, true, false],
			at_least: [false, true, false, false],
			calls: [1, 2, 100, 5],
			errors: [0, 1, 0, 0],
			bytes: [10, Number.NaN, 1, 1],
			time_ns: [50, 60, 1000, 7],
			max_ns: [50, 40, 9, 7],
			latency: [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 2], [0, 100], [5]],
		}),
	);
	expect(sums.map((s) => [s.key, s.rest, s.calls, s.time])).toEqual([
		["7", false, 3, 110],
		[null, false, 5, 7],
		[null, true, 100, 1000],
	]);
	expect(sums[0]).toMatchObject({ label: "/a", errors: 1, bytes: 10, max: 50, atLeast: true, slight: false });
	expect(sums[0]?.p99).toBeGreaterThan(32);
	expect(sums[0]?.p99).toBeLessThanOrEqual(64);
});

it("says when what may be missing makes no difference", () => {
	const of = (rest: number) =>
		sumsOf(
			tiles({
				key: ["7", null],
				label: ["/a", null],
				rest: [false, true],
				at_least: [true, false],
				calls: [1, 1],
				errors: [0, 0],
				bytes: [0, 0],
				time_ns: [1000, rest],
				max_ns: [1000, rest],
			}),
		)[0];
	expect(of(4)).toMatchObject({ atLeast: true, slight: true });
	expect(of(400)).toMatchObject({ atLeast: true, slight: false });
});
