import { describe, expect, it } from "vitest";
import { Lists } from "../../api/ipc";
import { gridOf } from "../../lib/buckets";
import { byName, coarser, fold, p99OfAll } from "./names";

/** Rows of (bucket, thread): tid, name, calls, power of two of their latency. */
function tiles(rows: [t: number, tid: string | null, name: string | null, calls: number, power: number][]) {
	const column: Record<string, number[]> = {
		t: rows.map((r) => r[0]),
		calls: rows.map((r) => r[3]),
		errors: rows.map(() => 0),
		time_ns: rows.map((r) => r[3] * 2 ** r[4]),
	};
	return {
		rows: rows.length,
		f64: (name: string) => Float64Array.from(column[name] ?? []),
		texts: (name: string) => rows.map((r) => (name === "key" ? r[1] : r[2])),
		flags: () => rows.map((r) => r[1] === null),
		lists: () =>
			Lists.of(
				rows.map((r) => {
					const list = new Float64Array(40);
					list[r[4]] = r[3];
					return list;
				}),
			),
		has: () => true,
		metaNumber: (name: string) => ({ bucket_ns: 10, from: 0, to: 40 })[name] ?? null,
	};
}

const TILES = tiles([
	[0, "1", "db", 10, 10],
	[0, "2", "db", 20, 10],
	[10, "3", "compact", 5, 20],
	[30, "1", "db", 100, 12],
	[30, null, null, 7, 5],
]);

describe("threads", () => {
	const grid = gridOf(TILES);
	it("are summed up by name, the most first and what is left last", () => {
		const names = byName(TILES, grid);
		expect(names.map((n) => n.name)).toEqual(["db", "compact", null]);
		expect([...(names[0]?.calls ?? [])]).toEqual([30, 0, 0, 100]);
		expect(names[0]?.tids).toEqual([1, 2]);
		expect(names[0]?.total).toBe(130);
	});
	it("have percentiles within their power of two, and none without calls", () => {
		const [db] = byName(TILES, grid);
		expect(db?.p99[0]).toBeGreaterThanOrEqual(2 ** 10);
		expect(db?.p99[0]).toBeLessThanOrEqual(2 ** 11);
		expect(db?.p99[1]).toBeNaN();
		expect(db?.p99All).toBeGreaterThan(2 ** 12);
	});
	it("have percentiles of several buckets at once", () => {
		const wide = coarser(grid, 2);
		expect(wide.step).toBe(2);
		expect(wide.grid.bucket).toBe(20);
		const names = byName(TILES, grid, wide.step);
		expect(names[0]?.p99).toHaveLength(2);
		const all = p99OfAll(TILES, grid, wide.step);
		expect(all).toHaveLength(2);
		expect(all[0]).toBeGreaterThan(2 ** 20);
	});
	it("beyond the first so many names are one", () => {
		const folded = fold(byName(TILES, grid), 1);
		expect(folded.map((n) => n.name)).toEqual(["db", null]);
		expect([...(folded[1]?.calls ?? [])]).toEqual([0, 5, 0, 7]);
		expect(folded[1]?.total).toBe(12);
	});
});
