import { expect, it } from "vitest";
import { Lists } from "../api/ipc";
import type { TileColumns } from "./buckets";
import { latencyOf, weighted } from "./latency";

function tiles(rows: { key: string; calls: number; time: number; max: number; latency: number[] }[]): TileColumns {
	const numbers: Record<string, Float64Array> = {
		calls: Float64Array.from(rows, (r) => r.calls),
		time_ns: Float64Array.from(rows, (r) => r.time),
		max_ns: Float64Array.from(rows, (r) => r.max),
	};
	return {
		rows: rows.length,
		f64: (name) => numbers[name] ?? new Float64Array(rows.length),
		texts: () => rows.map((r) => r.key),
		flags: () => rows.map(() => false),
		lists: () => Lists.of(rows.map((r) => r.latency)),
		has: () => true,
		metaNumber: () => 1,
	};
}

it("keeps purposes apart and puts the one with most time first", () => {
	const found = latencyOf(
		tiles([
			{ key: "read", calls: 1000, time: 2000, max: 3, latency: [0, 1000] },
			{ key: "sync", calls: 2, time: 40_000, max: 30_000, latency: [...Array(13).fill(0), 1, 1] },
			{ key: "sync", calls: 1, time: 9000, max: 9000, latency: [...Array(13).fill(0), 1] },
		]),
	);
	expect(found.map((f) => [f.purpose, f.calls, f.time, f.max])).toEqual([
		["sync", 3, 49_000, 30_000],
		["read", 1000, 2000, 3],
	]);
	expect(found[1]?.p99).toBeLessThanOrEqual(3);
});

it("weighs by time: few long calls have half of it", () => {
	const [one] = latencyOf(
		tiles([{ key: "read", calls: 1001, time: 1e6, max: 1 << 20, latency: [1000, ...Array(19).fill(0), 1] }]),
	);
	expect(one?.p50).toBeLessThanOrEqual(2);
	expect(one?.halfTime).toBeGreaterThan(1 << 19);
});

it("weighs cells by the duration of their row", () => {
	const heat = { counts: Float64Array.of(4, 1), low: 2, rows: 2, max: 4 };
	expect([...weighted(heat)]).toEqual([4 * 2 ** 2.5, 2 ** 3.5]);
});
