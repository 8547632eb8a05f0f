import { describe, expect, it } from "vitest";
import { Lists } from "../api/ipc";
import { gridOf, heatOf, perSecond, seriesByKey, seriesOf, type TileColumns } from "./buckets";

function tiles(columns: Record<string, unknown[]>, meta: Record<string, number>): TileColumns {
	const of = (name: string) => columns[name] ?? [];
	return {
		rows: of("t").length,
		f64: (name) => Float64Array.from(of(name) as number[]),
		texts: (name) => of(name) as (string | null)[],
		lists: (name) => Lists.of(of(name) as number[][]),
		flags: (name) => of(name) as boolean[],
		has: (name) => name in columns,
		metaNumber: (name) => meta[name] ?? null,
	};
}

describe("grids", () => {
	const answer = tiles(
		{
			t: [120, 120, 140],
			key: ["read", null, "read"],
			label: ["read", null, "read"],
			rest: [false, true, false],
			calls: [5, 100, 7],
			max_ns: [9, 3, 2],
		},
		{ bucket_ns: 10, from: 105, to: 160 },
	);
	it("have buckets without calls too, aligned to those of the answer", () => {
		const grid = gridOf(answer);
		expect([...grid.t]).toEqual([100, 110, 120, 130, 140, 150]);
	});
	it("keep every call and put what is left last", () => {
		const grid = gridOf(answer);
		const keyed = seriesByKey(answer, grid, "calls");
		expect(keyed.map((s) => [s.key, s.total])).toEqual([
			["read", 12],
			[null, 100],
		]);
		expect([...(keyed[0]?.values ?? [])]).toEqual([0, 0, 5, 0, 7, 0]);
		expect([...seriesOf(answer, grid, "calls")]).toEqual([0, 0, 105, 0, 7, 0]);
		expect([...seriesOf(answer, grid, "max_ns", "max")]).toEqual([0, 0, 9, 0, 2, 0]);
	});
	it("are empty for an empty answer with no window", () => {
		expect(gridOf(tiles({ t: [] }, { bucket_ns: 10 })).length).toBe(0);
	});
	it("cover the window of an empty answer", () => {
		expect(gridOf(tiles({ t: [] }, { bucket_ns: 10, from: 0, to: 30 })).length).toBe(3);
	});
});

it("makes a heat map of the rows that have calls", () => {
	const answer = tiles(
		{
			t: [0, 10],
			latency: [
				[0, 0, 3, 0],
				[0, 0, 0, 4],
			],
		},
		{ bucket_ns: 10, from: 0, to: 20 },
	);
	const heat = heatOf(answer, gridOf(answer));
	expect(heat).toMatchObject({ low: 2, rows: 2, max: 4 });
	expect([...heat.counts]).toEqual([3, 0, 0, 4]);
});

it("turns counts of buckets into rates", () => {
	expect([...perSecond(Float64Array.of(5), 1e8)]).toEqual([50]);
});
