import { expect, it } from "vitest";
import { evidenceOf, evidenceText } from "./evidence";

it.each([
	["sync-storm", "share_of_time", 0.784, "78.4 % of the time from the first to the last"],
	["sync-storm", "median_ns", 14_900_000, "half of them took 14.9 ms or less"],
	["sync-storm", "median_dirty_bytes", 4096, "half of the syncs had 4 KiB or less to write"],
	["fault-storm", "bytes_read", 4096, "the device read 4 KiB"],
	["redundant-read", "bytes_read", 4096, "4 KiB read"],
	["redundant-read", "processes", 1, "1 process"],
	["noisy-neighbor", "ratio", 12.345, "12.35 times as long"],
	["my-rule", "opens", 150, "opens 150"],
	["my-rule", "my_own_ns", 1500, "my own 1.5 µs"],
])("says %s's %s in words", (rule, name, value, text) => {
	expect(evidenceText(rule, { name, value })).toBe(text);
});

it("leaves out what is 0", () => {
	const evidence = [
		{ name: "opens", value: 1204 },
		{ name: "opens_to_append", value: 0 },
	];
	expect(evidenceOf("repeated-open", evidence)).toBe("1\u202f204 opens");
});
