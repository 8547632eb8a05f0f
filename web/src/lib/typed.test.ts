import { describe, expect, it } from "vitest";
import { distance, type Known, meaningOf, offersOf } from "./typed";

const KNOWN: Known[] = [
	{ kind: "syscall", label: "fsync", filter: { syscall: ["fsync"] } },
	{ kind: "syscall", label: "fdatasync", filter: { syscall: ["fdatasync"] } },
	{ kind: "name", label: "redis-server", filter: { comm: ["redis-server"] } },
	{ kind: "file", label: "/data/appendonly.aof", filter: { file: [3] } },
	{ kind: "unit", label: "nginx.service", filter: { unit: ["nginx.service"] } },
	{ kind: "cgroup", label: "/system.slice/nginx.service", filter: { cgroup: ["/system.slice/nginx.service"] } },
	{ kind: "pod", label: "shop/db-0", filter: { pod: ["shop/db-0"] } },
	{ kind: "container", label: "shop/db-0/postgres", filter: { container: ["3b1e5c0f7a9d2468"] } },
	{ kind: "volume", label: "shop/data-db-0", filter: { volume: ["shop/data-db-0"] } },
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

	it("gets offers when the names of the session come after it", () => {
		const offers = (text: string, known = KNOWN) => offersOf(text, known).map((k) => k.label);
		for (const text of ["fsync", "fsyncc"]) {
			expect(offers(text, [])).toEqual([]);
			expect(offers(text)).toContain("fsync");
		}
		expect(offers("syscall:fsyncc")).toEqual(["fsync"]);
		expect(offers("")).toEqual([]);
	});
	it.each([
		["unit:nginx", { unit: ["nginx"] }],
		["unit:system.slice", { unit: ["system.slice"] }],
		["!pod:db-0", { not_pod: ["db-0"] }],
		["pod:web-*", { pod: ["web-*"] }],
		["cgroup:/system.slice/", { cgroup: ["/system.slice/"] }],
		["container:3b1e5c0f7a9d", { container: ["3b1e5c0f7a9d"] }],
		["container:postgres", { container: ["postgres"] }],
		["claim:pvc-77", { volume: ["pvc-77"] }],
		["nginx.service", { unit: ["nginx.service"] }],
	])("%s is a tenant", (text, filter) => expect(meaningOf(text, KNOWN)).toEqual({ filter }));
	it.each([
		["unit:ngin", "nginx.service"],
		["pod:shop/db-1", "shop/db-0"],
	])("%s is none of the session's", (text, offer) =>
		expect(meaningOf(text, KNOWN)).toMatchObject({ offers: [{ label: offer }] }),
	);
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
