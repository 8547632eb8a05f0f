import { describe, expect, it } from "vitest";
import { parseFile, parseQueries, Queries, queriesFile, TABLE } from "./queries";

function memory() {
	const kept = new Map<string, string>();
	return {
		getItem: (name: string) => kept.get(name) ?? null,
		setItem: (name: string, value: string) => {
			kept.set(name, value);
		},
	};
}

const query = (name: string, panel = true) => ({ name, sql: `SELECT '${name}'`, plot: TABLE, panel, wide: false });

describe("saved queries", () => {
	it("are there again in another tab", () => {
		const storage = memory();
		new Queries(storage).save(query("a"));
		expect(new Queries(storage).get().map((q) => q.name)).toEqual(["a"]);
	});
	it("of the same name replace each other", () => {
		const queries = new Queries(memory());
		const first = queries.save(query("a"));
		const again = queries.save({ ...query("a"), sql: "SELECT 2" });
		expect(again?.id).toBe(first?.id);
		expect(queries.get()).toHaveLength(1);
		expect(queries.get()[0]?.sql).toBe("SELECT 2");
	});
	it("keep what another tab has saved meanwhile", () => {
		const storage = memory();
		const one = new Queries(storage);
		const two = new Queries(storage);
		one.save(query("a"));
		two.save(query("b"));
		expect(two.get().map((q) => q.name)).toEqual(["a", "b"]);
	});
	it("move among panels only", () => {
		const queries = new Queries(memory());
		const a = queries.save(query("a"));
		queries.save(query("no panel", false));
		queries.save(query("b"));
		queries.move(a?.id ?? "", 1);
		expect(queries.get().map((q) => q.name)).toEqual(["b", "no panel", "a"]);
		queries.move(a?.id ?? "", 1);
		expect(queries.get().map((q) => q.name)).toEqual(["b", "no panel", "a"]);
	});
	it("change and go", () => {
		const queries = new Queries(memory());
		const a = queries.save(query("a"));
		queries.change(a?.id ?? "", { wide: true });
		expect(queries.get()[0]?.wide).toBe(true);
		queries.remove(a?.id ?? "");
		expect(queries.get()).toEqual([]);
	});
	it("are told when the browser keeps nothing", () => {
		expect(new Queries(null).save(query("a"))).toBeNull();
		const full = {
			getItem: () => null,
			setItem: () => {
				throw new Error("full");
			},
		};
		expect(new Queries(full).save(query("a"))).toBeNull();
	});
	it("that are damaged are left out", () => {
		expect(parseQueries("no json")).toEqual([]);
		expect(parseQueries('{"a":1}')).toEqual([]);
		const kept = parseQueries('[1,{"id":"x"},{"id":"q","name":"n","sql":"s","plot":{"form":"<b>","y":[1,"v"]}}]');
		expect(kept).toEqual([{ id: "q", name: "n", sql: "s", plot: { ...TABLE, y: ["v"] }, panel: false, wide: false }]);
	});
});

describe("a file of queries", () => {
	it("has them as they were saved", () => {
		const queries = new Queries(memory());
		queries.save({ ...query("a"), wide: true });
		queries.save(query("b", false));
		const read = parseFile(JSON.parse(queriesFile(queries.get())));
		expect(read?.map(({ id: _, ...rest }) => rest)).toEqual([{ ...query("a"), wide: true }, query("b", false)]);
	});
	it("of something else is refused, and what is no query left out", () => {
		expect(parseFile({ queries: [] })).toBeNull();
		expect(parseFile([1])).toBeNull();
		expect(parseFile({ "fathom-queries": 1, queries: [1, { name: "x" }, query("c")] })?.map((q) => q.name)).toEqual([
			"c",
		]);
	});
});
