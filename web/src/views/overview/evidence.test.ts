import { expect, it } from "vitest";
import { evidenceText } from "./evidence";

it.each([
	["median_ns", 1500, "median 1.5 µs"],
	["share_of_jumps", 0.9875113435028737, "share of jumps 98.8 %"],
	["bytes_at_stake", 4096, "bytes at stake 4 KiB"],
	["ratio", 2.51234, "ratio 2.51"],
	["reads", 7, "reads 7"],
])("%s of %d is %s", (name, value, text) => {
	expect(evidenceText({ name, value })).toBe(text);
});
