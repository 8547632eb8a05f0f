import { describe, expect, it } from "vitest";
import { chipsOf, mergeFilters, parseDuration, parseTyped, withoutPath, withPath } from "./filters";

describe("what is typed", () => {
	it.each([
		["syscall:read,write", { syscall: ["read", "write"] }],
		["!comm:redis server", { not_comm: ["redis server"] }],
		["tid=12", { tid: [12] }],
		["unit:nginx.service", { unit: ["nginx.service"] }],
		["!namespace=kube-system,monitoring", { not_namespace: ["kube-system", "monitoring"] }],
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

it("filters by a directory only where that leaves out more than before", () => {
	const reads = { syscall: ["read"] };
	expect(withPath(reads, "/usr/doc/")).toEqual({ syscall: ["read"], path: "/usr/doc/" });
	expect(withPath({ path: "/usr" }, "/usr/doc/")).toEqual({ path: "/usr/doc/" });
	expect(withPath({ path: "/usr/doc/a" }, "/usr/doc/")).toBeNull();
	expect(withPath({ path: ".html" }, "/usr/doc/")).toBeNull();
	expect(withPath({ not_path: ".html" }, "/usr/doc/")).toEqual({ not_path: ".html", path: "/usr/doc/" });
	expect(withPath({}, "/")).toBeNull();

	expect(withoutPath(reads, "/usr/doc/")).toEqual({ syscall: ["read"], not_path: "/usr/doc/" });
	expect(withoutPath({ not_path: "/usr/doc/" }, "/usr/")).toEqual({ not_path: "/usr/" });
	expect(withoutPath({ not_path: "/usr" }, "/usr/doc/")).toBeNull();
	expect(withoutPath({ not_path: ".html" }, "/usr/doc/")).toBeNull();
	expect(withoutPath({ path: ".html" }, "/usr/doc/")).toEqual({ path: ".html", not_path: "/usr/doc/" });
	expect(withoutPath({ path: "/usr/doc/a" }, "/usr/doc/")).toBeNull();
	expect(withoutPath({}, "/")).toBeNull();
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
