import { describe, expect, it } from "vitest";
import { distribution, overTime } from "./curves";

function tiles(bucket: number, calls: number[], power: number) {
	const meta: Record<string, number> = { bucket_ns: bucket, from: 1000, to: 1000 + bucket * calls.length };
	return {
		rows: calls.length,
		f64: (name: string) =>
			Float64Array.from(calls, (n, i) => (name === "t" ? 1000 + i * bucket : name === "calls" ? n : 0)),
		texts: () => calls.map(() => null),
		flags: () => calls.map(() => false),
		lists: () =>
			calls.map((n) => {
				const list = new Float64Array(40);
				list[power] = n;
				return list;
			}),
		has: () => true,
		metaNumber: (name: string) => meta[name] ?? null,
	};
}

describe("two sessions", () => {
	it("begin together, in the buckets of the coarser one", () => {
		const made = overTime(tiles(100, [1, 1, 1, 1, 1, 1], 10), tiles(200, [4, 4], 10));
		expect(made.bucket).toBe(200);
		expect([...made.t]).toEqual([0, 200, 400]);
		expect([...made.calls[0]]).toEqual([2e9 / 200, 2e9 / 200, 2e9 / 200]);
		expect([...made.calls[1]]).toEqual([4e9 / 200, 4e9 / 200, Number.NaN]);
	});
	it("have shares of their own calls", () => {
		const made = distribution(tiles(100, [3, 1], 10), tiles(100, [10], 12));
		expect(made.low).toBe(10);
		expect([...made.shares[0]]).toEqual([1, 0, 0]);
		expect([...made.shares[1]]).toEqual([0, 0, 1]);
	});
	it("without calls have empty shares", () => {
		const made = distribution(tiles(100, [], 10), tiles(100, [], 10));
		expect(made.shares[0]).toHaveLength(1);
	});
});
