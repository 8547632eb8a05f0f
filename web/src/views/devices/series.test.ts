import { describe, expect, it } from "vitest";
import { Lists } from "../../api/ipc";
import { gridOf } from "../../lib/buckets";
import { byUser, quantileLine, ratio, sampled, sharesText, stacked, sum, withoutUnseen } from "./series";

function rows(list: Record<string, number | string | number[]>[], meta: Record<string, number> = {}) {
	return {
		rows: list.length,
		f64: (name: string) => Float64Array.from(list, (r) => Number(r[name] ?? Number.NaN)),
		texts: (name: string) => list.map((r) => (r[name] === undefined ? null : String(r[name]))),
		flags: () => list.map(() => false),
		lists: (name: string) => Lists.of(list.map((r) => (r[name] as number[] | undefined) ?? [])),
		has: (name: string) => list.some((r) => r[name] !== undefined),
		metaNumber: (name: string) => meta[name] ?? null,
	};
}

const META = { bucket_ns: 10, from: 0, to: 30 };

it("those who wait lie on those in the device, whoever has the most of both first", () => {
	const answer = rows(
		[
			{ t: 0, key: "db", device: 2, queue: 0 },
			{ t: 0, key: "fio", device: 1, queue: 16 },
			{ t: 10, key: "init", device: 0.5, queue: 0.25 },
		],
		META,
	);
	const { device, queue, border } = stacked(answer, gridOf(answer), 2);
	expect(device.map((s) => [s.key, s.total])).toEqual([
		["fio", 1],
		["db", 2],
		[null, 0.5],
	]);
	// Who never waited has no series of nothing.
	expect(queue.map((s) => [s.key, s.total])).toEqual([
		["fio", 16],
		[null, 0.25],
	]);
	expect([...border]).toEqual([3, 0.5, 0]);
});

it("users beyond the first so many are one", () => {
	const answer = rows(
		["a", "b", "c"].map((key, i) => ({ t: 0, key, requests: 10 - i })),
		META,
	);
	const users = byUser(answer, gridOf(answer), "requests", 1, 1);
	expect(users.map((u) => [u.key, u.total])).toEqual([
		["a", 10],
		[null, 17],
	]);
});

describe("columns over time", () => {
	const answer = rows(
		[
			{ t: 0, depth: 4, latency: [9, 0, 0, 2] },
			{ t: 20, depth: 2, latency: [0, 0, 0, 0] },
		],
		META,
	);
	it("have gaps where there is no row", () => {
		expect([...sampled(answer, gridOf(answer), "depth")]).toEqual([4, Number.NaN, 2]);
	});
	it("leave out what has no duration", () => {
		const lists = withoutUnseen(answer).lists("latency");
		expect([0, 1].map((i) => [...lists.row(i)])).toEqual([
			[0, 0, 0, 2],
			[0, 0, 0, 0],
		]);
	});
	it("have quantiles of each bucket", () => {
		const heat = { counts: Float64Array.from([0, 4, 0, 0]), low: 3, rows: 2, max: 4 };
		const line = quantileLine(heat, 2, 0.5);
		expect(line[0]).toBeGreaterThanOrEqual(2 ** 4);
		expect(line[0]).toBeLessThanOrEqual(2 ** 5);
		expect(line[1]).toBeNaN();
	});
});

it("ratios are of something", () => {
	expect([...ratio(Float64Array.from([1, 0]), Float64Array.from([4, 0]))]).toEqual([0.25, Number.NaN]);
	expect(sum(Float64Array.from([1, Number.NaN, 2]))).toBe(3);
});

it("says who had how much, and leaves out who had next to nothing", () => {
	const user = (key: string, total: number) => ({ key, label: key, total });
	expect(sharesText([user("fio", 60), user("db", 20), user("fio", 19.5), user("sh", 0.5)], 4)).toBe(
		"fio 79.5 %, db 20 %",
	);
	expect(sharesText([user("", 10)], 4)).toBe("not known 100 %");
	expect(sharesText([], 4)).toBe("");
});
