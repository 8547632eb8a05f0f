import { expect, it } from "vitest";
import { evidenceOf, evidenceText } from "./evidence";

it.each([
	["median_ns", 1500, "median 1.5 µs"],
	["share_of_jumps", 0.9875113435028737, "share of jumps 98.8 %"],
	["bytes_at_stake", 4096, "bytes at stake 4 KiB"],
	["ratio", 2.51234, "ratio 2.51"],
	["ratio", 3549.87, "ratio 3\u202f550"],
	["reads", 7, "reads 7"],
])("%s of %d is %s", (name, value, text) => {
	expect(evidenceText({ name, value })).toBe(text);
});

it("leaves out numbers that are 0", () => {
	const evidence = [
		{ name: "reads", value: 7 },
		{ name: "opens_to_append", value: 0 },
		{ name: "share_of_jumps", value: 0.5 },
	];
	expect(evidenceOf(evidence)).toBe("reads 7 · share of jumps 50 %");
});
