import { expect, it } from "vitest";
import { dotAt } from "./plotframe";

it("finds the dot whose left or right half is below the pointer", () => {
	const dots = [Number.NaN, 40, Number.NaN, 80];
	const at = (left: number, top: number) =>
		dotAt(
			dots,
			(place) => place * 10,
			(value) => 100 - value,
			{ left, top },
		);
	expect([at(10, 60), at(8, 60), at(12, 60), at(10, 57)]).toEqual([1, 1, 1, 1]);
	expect([at(27, 22), at(33, 18)]).toEqual([3, 3]);
	expect([at(2, 60), at(10, 68), at(20, 50), at(0, 0)]).toEqual([-1, -1, -1, -1]);
});
