import { expect, it } from "vitest";
import { bucketOf, stackAt } from "./onward";

it("finds the stack below the pointer", () => {
	const stacks = [
		[1, 0],
		[2, 5],
		[0, 1],
	];
	const at = (index: number, value: number) => stackAt(stacks, { index, value });
	expect([at(0, 0.5), at(0, 2.5), at(0, 3.5)]).toEqual([0, 1, -1]);
	expect([at(1, 0.5), at(1, 5.5), at(-1, 0)]).toEqual([1, 2, -1]);
});

it("knows the time of a bucket", () => {
	const grid = { t: Float64Array.from([0, 10]), bucket: 10 };
	expect(bucketOf(grid, 1)).toEqual({ from: 10, to: 20 });
	expect([bucketOf(grid, -1), bucketOf(grid, 2)]).toEqual([null, null]);
});
