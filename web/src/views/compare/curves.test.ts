import { describe, expect, it } from "vitest";
import { Lists } from "../../api/ipc";
import { OF, overTime, survival } from "./curves";

function tiles(bucket: number, calls: number[], power: number) {
	const meta: Record<string, number> = { bucket_ns: bucket, from: 1000, to: 1000 + bucket * calls.length };
	return {
		rows: calls.length,
		f64: (name: string) =>
			Float64Array.from(calls, (n, i) => (name === "t" ? 1000 + i * bucket : name === "calls" ? n : 0)),
		texts: () => calls.map(() => null),
		flags: () => calls.map(() => false),
		lists: () =>
			Lists.of(
				calls.map((n) => {
					const list = new Float64Array(40);
					list[power] = n;
					return list;
				}),
			),
		has: () => true,
		metaNumber: (name: string) => meta[name] ?? null,
	};
}

describe("two sessions", () => {
	it("begin together, in the buckets of the coarser one", () => {
		const made = overTime(tiles(100, [1, 1, 1, 1, 1, 1], 10), tiles(200, [4, 4], 10), "calls");
		expect(made.bucket).toBe(200);
		expect([...made.t]).toEqual([0, 200, 400]);
		expect([...made.values[0]]).toEqual([2e9 / 200, 2e9 / 200, 2e9 / 200]);
		expect([...made.values[1]]).toEqual([4e9 / 200, 4e9 / 200, Number.NaN]);
		const p99 = overTime(tiles(100, [1, 1], 10), tiles(200, [4], 12), "p99");
		expect(p99.values.map((side) => Math.floor(Math.log2(side[0] ?? 0)))).toEqual([10, 12]);
	});
	it("go on through calls in progress, and stop where there are none", () => {
		const made = (calls: number[], busy: number[]) => ({
			...tiles(100, calls, 10),
			f64: (name: string) =>
				Float64Array.from(calls, (n, i) =>
					name === "t" ? 1000 + i * 100 : name === "busy_ns" ? (busy[i] ?? 0) : name === "max_ns" ? n * 7 : n,
				),
		});
		const both = overTime(made([1, 0, 0, 0, 2], [100, 100, 50, 0, 9]), made([1], [9]), "max");
		expect([...both.values[0]].slice(0, 5)).toEqual([7, 7, 7, Number.NaN, 14]);
	});
	it("have shares of their own calls that took so long", () => {
		const made = survival(tiles(100, [3, 1], 10), tiles(100, [10], 12));
		expect([...made.t]).toEqual([10, 11, 12, 13]);
		expect([...made.values[0]]).toEqual([OF, Number.NaN, Number.NaN, Number.NaN]);
		expect([...made.values[1]]).toEqual([OF, OF, OF, Number.NaN]);
	});
	it("without calls have no curve", () => {
		const made = survival(tiles(100, [], 10), tiles(100, [], 10));
		expect([...made.values[0]].every(Number.isNaN)).toBe(true);
	});
});
