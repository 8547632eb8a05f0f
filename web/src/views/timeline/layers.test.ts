import { describe, expect, it } from "vitest";
import { type BelowColumns, decodeBelow } from "./layers";

/** An answer as the server sends it. */
function answer(
	meta: Record<string, string | number>,
	layer: readonly string[],
	numbers: Record<string, readonly number[]>,
	name: readonly string[] = layer,
): BelowColumns {
	const codes = (texts: readonly string[]) => {
		const values = [...new Set(texts)];
		return { codes: Int32Array.from(texts, (text) => values.indexOf(text)), values };
	};
	return {
		rows: layer.length,
		f64: (column) => Float64Array.from(numbers[column] ?? []),
		codes: (column) => codes(column === "name" ? name : layer),
		metaNumber: (key) => (typeof meta[key] === "number" ? meta[key] : null),
		metaText: (key) => (typeof meta[key] === "string" ? meta[key] : null),
	};
}

describe("what lies below the calls", () => {
	it("has single visits by thread and layer, layers from the call down to the device", () => {
		const below = decodeBelow(
			answer(
				{ mode: "visits", from: 0, to: 100, bucket_ns: 0 },
				["device", "fs", "fs", "sched"],
				{ lane: [7, 7, 7, 9], t: [20, 10, 60, 5], dur: [10, 40, 5, 1], self_ns: [10, 30, 5, 1], rid: [1, 1, 2, 3] },
				["vda", "ext4_sync_file", "iomap_dio_rw", "io"],
			),
		);
		expect(below.layers).toEqual(["fs", "device", "sched"]);
		const fs = below.threads.get(7)?.get("fs")?.visits;
		expect([...(fs?.t ?? [])]).toEqual([10, 60]);
		expect(fs?.name).toEqual(["ext4_sync_file", "iomap_dio_rw"]);
		expect([...(fs?.rid ?? [])]).toEqual([1, 2]);
		expect(below.threads.get(9)?.get("device")).toBeUndefined();
	});
	it("spreads the time of a visit that is longer than its bucket over those after it", () => {
		const below = decodeBelow(
			answer({ mode: "sums", from: 1000, to: 1040, bucket_ns: 10 }, ["sched", "sched"], {
				lane: [7, 7],
				t: [1000, 1030],
				visits: [1, 2],
				time_ns: [25, 4],
				max_ns: [25, 3],
			}),
		);
		const sums = below.threads.get(7)?.get("sched")?.sums;
		expect([...(sums?.time ?? [])]).toEqual([10, 10, 5, 4]);
		expect([...(sums?.visits ?? [])]).toEqual([1, 0, 0, 2]);
	});
	it("says so when there are too many calls", () => {
		const below = decodeBelow(answer({ mode: "many", from: 0, to: 1, bucket_ns: 0 }, [], {}));
		expect(below.mode).toBe("many");
		expect(below.threads.size).toBe(0);
	});
});
