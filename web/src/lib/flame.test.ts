import { expect, it } from "vitest";
import {
	changeOf,
	type FlameNode,
	type FlameRows,
	flameOf,
	LEVELS,
	type Level,
	nodeAt,
	pathOf,
	placedOf,
} from "./flame";

function rows(list: readonly [string, string | null, string, string, string | null, number][]): FlameRows {
	const column = (i: number) => list.map((row) => row[i] as string | null);
	const levels = Object.fromEntries(LEVELS.map((level, i) => [level, column(i)])) as Record<Level, (string | null)[]>;
	return { length: list.length, levels, ns: Float64Array.from(list, (row) => row[5]) };
}

const SAMPLE = rows([
	["db", "/a", "fsync", "device", "fio", 900],
	["db", "/a", "fsync", "fs", null, 50],
	["db", "/b", "write", "syscall", null, 33],
	["fio", null, "write", "device", "fio", 17],
]);

it("adds up to the sum of the rows, in every order of the levels", () => {
	for (const order of [LEVELS, [...LEVELS].reverse(), ["layer"], ["ahead", "process"]] as Level[][]) {
		const root = flameOf(SAMPLE, order);
		expect(root.ns).toBe(1000);
		const check = (of: typeof root) => {
			const below = of.children.reduce((all, child) => all + child.ns, 0);
			expect(below).toBeLessThanOrEqual(of.ns);
			of.children.forEach(check);
		};
		check(root);
	}
});

it("leads to a node by its names, and back", () => {
	const root = flameOf(SAMPLE, LEVELS);
	const deep = nodeAt(root, ["db", "/a", "fsync", "device", "fio"]);
	expect([deep.ns, deep.level, pathOf(deep)]).toEqual([900, "ahead", ["db", "/a", "fsync", "device", "fio"]]);
	expect(nodeAt(root, ["db", "gone"]).name).toBe("db");
	expect(nodeAt(root, ["fio"]).children[0]?.name).toBe("no file");
});

it("gives children their share of what is in focus", () => {
	const root = flameOf(SAMPLE, LEVELS);
	const placed = placedOf(nodeAt(root, ["db"]), 0.01);
	expect(placed.slice(0, 2).map((p) => [p.node.name, p.from, p.to])).toEqual([
		["all calls", 0, 1],
		["db", 0, 1],
	]);
	const file = placed.find((p) => p.node.name === "/a");
	expect(file?.to).toBeCloseTo(950 / 983);
	// Too narrow alone, and together: what is left out is shown as such.
	expect(placedOf(root, 0.02).some((p) => p.node.name === "fio" && p.node.level === "process")).toBe(false);
	const many = flameOf(rows(Array.from({ length: 10 }, (_, i) => ["p", `/${i}`, "read", "fs", null, 1])), LEVELS);
	const rest = placedOf(many, 0.2).find((p) => p.more > 0);
	expect([rest?.node.name, rest?.more, rest?.from]).toEqual(["p", 10, 0]);
	expect(rest?.to).toBeCloseTo(1);
});

it("compares with another session", () => {
	const root = flameOf(SAMPLE, LEVELS, rows([["db", "/a", "fsync", "fs", null, 100]]));
	expect([root.ns, root.before]).toEqual([1000, 100]);
	expect(changeOf(nodeAt(root, ["db", "/a", "fsync", "fs"]))).toBe(-0.5);
	expect(changeOf(nodeAt(root, ["fio"]))).toBe(1);
});

const RULE = { little: 0.02, many: 20, nearlyAll: 0.9 };

/** 60 files in three directories, one elsewhere, and a large one: `each` is the time of a small one. */
function manyFiles(each: number, large: number): FlameRows {
	return rows([
		...Array.from({ length: 60 }, (_, i): [string, string, string, string, null, number] => [
			"tar",
			`/doc/${i % 3}/${i}`,
			i % 2 === 0 ? "read" : "openat",
			"syscall",
			null,
			each,
		]),
		["tar", "/lib/libc.so", "read", "syscall", null, each],
		["tar", "/out.tar", "write", "device", null, large],
	]);
}

it("puts many files with little time into one frame of their directory, which opens", () => {
	const root = flameOf(manyFiles(1, 39), LEVELS, undefined, RULE);
	expect(root.ns).toBe(100);
	const shown = (of: FlameNode) => of.children.map((child) => [child.label, child.level, child.ns]);
	const tar = nodeAt(root, ["tar"]);
	expect(shown(tar)).toEqual([
		["61 paths, all but 1 in /doc", "directory", 61],
		["/out.tar", "file", 39],
	]);
	// As a whole it has what its files have.
	expect(tar.children[0]?.children.map((child) => [child.name, child.ns])).toEqual([
		["read", 31],
		["openat", 30],
	]);
	const doc = nodeAt(root, ["tar", "/doc/"]);
	expect(shown(doc)).toEqual([
		["20 paths in /doc/0", "directory", 20],
		["20 paths in /doc/1", "directory", 20],
		["20 paths in /doc/2", "directory", 20],
		["/lib/libc.so", "file", 1],
	]);
	expect(nodeAt(root, ["tar", "/doc/", "read"]).ns).toBe(31);
	const one = nodeAt(root, ["tar", "/doc/", "/doc/1/", "/doc/1/7"]);
	expect([one.ns, one.depth, one.children[0]?.name, one.children[0]?.depth]).toEqual([1, 4, "openat", 5]);
	expect(pathOf(one)).toEqual(["tar", "/doc/", "/doc/1/", "/doc/1/7"]);
});

it("leaves few files, and files with much time, as they are", () => {
	const files = (of: FlameNode) => of.children.filter((child) => child.level === "file").length;
	expect(files(nodeAt(flameOf(manyFiles(1, 39), LEVELS, undefined, { ...RULE, many: 62 }), ["tar"]))).toBe(62);
	expect(files(nodeAt(flameOf(manyFiles(1, 39), LEVELS, undefined, { ...RULE, little: 0.01 }), ["tar"]))).toBe(62);
	expect(files(nodeAt(flameOf(manyFiles(1, 39), LEVELS), ["tar"]))).toBe(62);
});

it("puts the same files together on both sides of a comparison", () => {
	const root = flameOf(manyFiles(1, 39), LEVELS, manyFiles(2, 39), RULE);
	expect([root.ns, root.before]).toEqual([100, 161]);
	const doc = nodeAt(root, ["tar"]).children[0];
	expect([doc?.label, doc?.ns, doc?.before]).toEqual(["61 paths, all but 1 in /doc", 61, 122]);
	const check = (of: FlameNode) => {
		for (const side of ["ns", "before"] as const)
			if (of.children.length > 0) expect(of.children.reduce((all, child) => all + child[side], 0)).toBe(of[side]);
		for (const child of of.children) if (child.level === "directory") check(nodeAt(root, pathOf(child)));
	};
	check(nodeAt(root, ["tar"]));
	check(nodeAt(root, ["tar", "/doc/"]));
});
