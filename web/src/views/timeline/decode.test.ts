import { describe, expect, it } from "vitest";
import { spread } from "./decode";

function density(time: number[], max: number[]) {
	const of = (values: number[]) => Float64Array.from(values);
	return { time: of(time), max: of(max), carried: new Float64Array(time.length) };
}

describe("time in buckets", () => {
	it("fills the buckets that a long call takes", () => {
		const d = density([35, 0, 0, 0, 0], [35, 0, 0, 0, 0]);
		spread(d, 10);
		expect([...d.time]).toEqual([10, 10, 10, 5, 0]);
		expect([...d.carried]).toEqual([0, 25, 15, 5, 0]);
	});
	it("is left where it is when calls fit", () => {
		const d = density([4, 10, 0, 3], [2, 3, 0, 3]);
		spread(d, 10);
		expect([...d.time]).toEqual([4, 10, 0, 3]);
	});
	it("never reaches further than the longest call", () => {
		// Many threads' worth of operations at once: more time than a bucket has, none of them long.
		const d = density([80, 0, 0, 0], [9, 0, 0, 0]);
		spread(d, 10);
		expect([...d.time]).toEqual([10, 0, 0, 0]);
	});
});
