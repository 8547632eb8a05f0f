import { expect, it } from "vitest";
import { changeOf, type FlameRows, flameOf, LEVELS, type Level, nodeAt, pathOf, placedOf } from "./flame";

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
