import { describe, expect, it } from "vitest";
import { Lists } from "../../api/ipc";
import { gridOf } from "../../lib/buckets";
import { byLayer } from "../../lib/layers";
import { largestLayer, p99Of, requestsOf, shares, slowestFirst, windowsOf } from "./stack";

function rows(list: Record<string, number | string>[]) {
	return {
		rows: list.length,
		f64: (name: string) => Float64Array.from(list, (r) => Number(r[name] ?? Number.NaN)),
		texts: (name: string) => list.map((r) => (r[name] === undefined ? null : String(r[name]))),
		flags: () => list.map(() => false),
		lists: () => Lists.of([]),
		has: (name: string) => list.some((r) => r[name] !== undefined),
		metaNumber: (name: string) => ({ bucket_ns: 10, from: 0, to: 30 })[name] ?? null,
	};
}

describe("windows", () => {
	const answer = rows([
		{ t: 0, layer: "device", self_ns: 30 },
		{ t: 0, layer: "syscall", self_ns: 10 },
		{ t: 20, layer: "syscall", self_ns: 5 },
	]);
	it("are stacked from the call down to the device", () => {
		const series = windowsOf(answer, gridOf(answer));
		expect(series.map((s) => s.label)).toEqual(["syscall", "device"]);
		expect([...(series[0]?.values ?? [])]).toEqual([10, 0, 5]);
	});
	it("have shares that add up to one, or to nothing", () => {
		const parts = shares(windowsOf(answer, gridOf(answer)));
		expect(parts.map((s) => s.values[0])).toEqual([0.25, 0.75]);
		expect(parts.map((s) => s.values[1])).toEqual([0, 0]);
	});
	it("put layers that nobody knows last", () => {
		expect(["zzz", "device", "syscall"].sort(byLayer)).toEqual(["syscall", "device", "zzz"]);
	});
});

describe("requests", () => {
	const requests = requestsOf(
		rows([
			{ rid: 7, t: 50, dur: 9, layer: "syscall", self_ns: 9 },
			{ rid: 5, t: 10, dur: 100, layer: "device", self_ns: 70 },
			{ rid: 5, t: 10, dur: 100, layer: "syscall", self_ns: 30 },
		]),
	);
	it("stand in the order of time, each with all of its layers", () => {
		expect([...requests.rid]).toEqual([5, 7]);
		expect(requests.layers.map((l) => [l.layer, ...l.self])).toEqual([
			["syscall", 30, 9],
			["device", 70, 0],
		]);
	});
	it("have layers that add up to how long they took", () => {
		for (let i = 0; i < requests.length; i += 1) {
			expect(requests.layers.reduce((sum, l) => sum + (l.self[i] ?? 0), 0)).toBe(requests.dur[i]);
		}
	});
	it("sort by how long they took", () => {
		const sorted = slowestFirst(requests);
		expect([...sorted.dur]).toEqual([100, 9]);
		expect(sorted.layers[1]?.self[0]).toBe(70);
	});
	it("know the layer with most of the time", () => {
		expect(largestLayer(requests, 0)).toBe("device");
		expect(largestLayer(requests, 1)).toBe("syscall");
		expect(largestLayer({ ...requests, layers: [] }, 0)).toBeNull();
	});
	it("have a p99", () => {
		expect(p99Of(Float64Array.from({ length: 200 }, (_, i) => 200 - i))).toBe(199);
		expect(p99Of(new Float64Array(0))).toBe(0);
	});
});
