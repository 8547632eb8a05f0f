import { describe, expect, it } from "vitest";
import { distance, type Known, meaningOf } from "./typed";

const KNOWN: Known[] = [
	{ kind: "syscall", label: "fsync", filter: { syscall: ["fsync"] } },
	{ kind: "syscall", label: "fdatasync", filter: { syscall: ["fdatasync"] } },
	{ kind: "name", label: "redis-server", filter: { comm: ["redis-server"] } },
	{ kind: "file", label: "/data/appendonly.aof", filter: { file: [3] } },
];

describe("a typed text", () => {
	it.each([
		["fsync", { filter: { syscall: ["fsync"] } }],
		["fsync > 10ms", { filter: { syscall: ["fsync"], dur: [10e6, null] } }],
		["appendonly > 1ms", { filter: { path: "appendonly", dur: [1e6, null] } }],
		["> 1ms", { filter: { dur: [1e6, null] } }],
		["syscall:fsync", { filter: { syscall: ["fsync"] } }],
		["path:fsyncc", { filter: { path: "fsyncc" } }],
		["ENOENT", { filter: { error: ["ENOENT"] } }],
	])("%s is a filter", (text, meaning) => expect(meaningOf(text, KNOWN)).toEqual(meaning));

	it("that is no duration says so", () => {
		expect(meaningOf("> 10 bananas", KNOWN)).toMatchObject({ problem: expect.stringContaining("10 bananas") });
		expect(meaningOf("fsync > 10 bananas", KNOWN)).toMatchObject({ problem: expect.stringContaining("bananas") });
	});
	it("with a slip gets what may be meant", () => {
		const offers = (text: string) => {
			const meaning = meaningOf(text, KNOWN);
			return meaning && "offers" in meaning ? meaning.offers.map((k) => k.label) : meaning;
		};
		expect(offers("syscall:fsyncc")).toEqual(["fsync"]);
		expect(offers("fsyncc > 10 bananas")).toEqual(["fsync"]);
		expect(meaningOf("redis-servr", KNOWN)).toMatchObject({ path: "redis-servr", otherwise: [KNOWN[2]] });
		expect(meaningOf("appendonly", KNOWN)).toEqual({ path: "appendonly", otherwise: [] });
	});
	it("of nothing means nothing", () => {
		expect(meaningOf(" ", KNOWN)).toBeNull();
	});
});

it("counts slips", () => {
	expect([distance("fsync", "fsync", 2), distance("fsyncc", "fsync", 2), distance("fysnc", "fsync", 2)]).toEqual([
		0, 1, 1,
	]);
	expect(distance("a", "abcdef", 2)).toBeGreaterThan(2);
});
