import { describe, expect, it } from "vitest";
import { chipsOf, mergeFilters, parseDuration, parseTyped } from "./filters";

describe("what is typed", () => {
	it.each([
		["syscall:read,write", { syscall: ["read", "write"] }],
		["!comm:redis server", { not_comm: ["redis server"] }],
		["tid=12", { tid: [12] }],
		["> 1ms", { dur: [1_000_000, null] }],
		["<50us", { dur: [null, 50_000] }],
		[">=2.5 s", { dur: [2_500_000_000, null] }],
		["1ms..10ms", { dur: [1_000_000, 10_000_000] }],
		["1 ms .. 2 s", { dur: [1_000_000, 2_000_000_000] }],
		["0.5 .. 2", { dur: [500_000, 2_000_000] }],
		["10ms..1ms", { path: "10ms..1ms" }],
		["../data", { path: "../data" }],
		["a..b", { path: "a..b" }],
		["error", { error: "any" }],
		["ok", { error: "none" }],
		["ENOENT", { error: ["ENOENT"] }],
		["!EAGAIN", { not_error: ["EAGAIN"] }],
		["path:/var", { path: "/var" }],
		["appendonly.aof", { path: "appendonly.aof" }],
		["!.log", { not_path: ".log" }],
		["pid:abc", { path: "pid:abc" }],
	])("%s", (text, filter) => expect(parseTyped(text)).toEqual(filter));

	it("is nothing when nothing was typed", () => {
		expect(parseTyped("  ")).toBeNull();
		expect(parseTyped("!")).toBeNull();
	});
	it("has durations in milliseconds without a unit", () => {
		expect(parseDuration("3")).toBe(3e6);
		expect(parseDuration("x")).toBeNull();
	});
});

it("joins lists and bounds", () => {
	expect(mergeFilters({ syscall: ["a"], dur: [5, null] }, { syscall: ["a", "b"], dur: [null, 9] })).toEqual({
		syscall: ["a", "b"],
		dur: [5, 9],
	});
});

it("has a chip for every member", () => {
	const chips = chipsOf({ syscall: ["read"], not_file: [3], path: "x", error: ["EIO"], dur: [1000, 2000] });
	expect(chips.map((c) => [c.name, c.not, c.values.join()])).toEqual([
		["syscall", false, "read"],
		["file", true, "3"],
		["path has", false, "x"],
		["error", false, "EIO"],
		["duration", false, "1 µs to 2 µs"],
	]);
});
