import { Table, vectorFromArray } from "apache-arrow";
import { describe, expect, it } from "vitest";
import { frameOf } from "../../api/anyipc";
import { Columns } from "../../api/arrow";
import { callsOf, instancesOf, type Member, namesOf, partsOf, slowestOf, treeOf } from "./spans";

const columns = (of: Record<string, (number | string | boolean | null)[]>) =>
	new Columns(
		frameOf(new Table(Object.fromEntries(Object.entries(of).map(([name, values]) => [name, vectorFromArray(values)])))),
	);

const LAYERS = {
	n: [2, 2, 1],
	calls: [3, 3, null],
	calls_ns: [50, 50, null],
	bytes: [10, 10, null],
	device_bytes: [null, null, null],
	layer: ["device", "syscall", null],
	self_ns: [30, 20, null],
};

describe("rows of SQL", () => {
	it("are one name with its layers", () => {
		const names = namesOf(
			columns({
				...LAYERS,
				service: ["shop", "shop", null],
				name: ["GET /", "GET /", "idle"],
				kind: ["server", "server", "internal"],
				spans: [4, 4, 1],
				total_ns: [100, 100, 7],
			}),
		);
		expect(names.map(({ name, service, spans, total }) => [name, service, spans, total])).toEqual([
			["GET /", "shop", 4, 100],
			["idle", null, 1, 7],
		]);
		expect(names[0]?.layers).toEqual([
			{ layer: "device", time: 30 },
			{ layer: "syscall", time: 20 },
		]);
		expect(names[1]).toMatchObject({ calls: 0, time: 0, bytes: 0, layers: [] });
	});

	it("are one span with its layers", () => {
		const spans = instancesOf(
			columns({
				...LAYERS,
				trace_id: ["a", "a", "b"],
				span_id: ["1", "1", "2"],
				t: [5, 5, 6],
				dur: [60, 60, 7],
				pid: [1, 1, null],
				tid: [2, 2, null],
				failed: [true, true, false],
				status_message: ["no", "no", null],
			}),
		);
		expect(spans.map(({ id, pid, tid, failed, message }) => [id, pid, tid, failed, message])).toEqual([
			["1", 1, 2, true, "no"],
			["2", null, null, false, null],
		]);
	});

	it("are calls in the order of time, though the longest came first", () => {
		const calls = callsOf(
			columns({
				rid: [7, 3],
				t: [20, 10],
				dur: [9, 1],
				bytes: [null, 4],
				syscall: ["fsync", "read"],
				path: [null, "/a"],
				span_name: ["x", "x"],
			}),
		);
		expect(calls.map((call) => [call.rid, call.bytes])).toEqual([
			[3, 4],
			[7, 0],
		]);
	});
});

describe("where the time of a span went", () => {
	const inside = { calls: 2, time: 50, bytes: 0, deviceBytes: 0, layers: [{ layer: "device", time: 50 }] };
	it("is in layers, and outside of calls", () => {
		expect(partsOf(inside, 200)).toEqual([
			{ layer: "device", time: 50, share: 0.25 },
			{ layer: null, time: 150, share: 0.75 },
		]);
	});
	it("is in calls alone where threads at once took longer than the span", () => {
		expect(partsOf(inside, 20)).toEqual([{ layer: "device", time: 50, share: 1 }]);
	});
});

describe("the spans of a trace", () => {
	const member = (id: string, parent: string | null): Member => ({
		id,
		parent,
		service: null,
		name: id,
		kind: "server",
		t: 0,
		dur: 1,
		failed: false,
	});
	const tree = (members: Member[]) => treeOf(members).map(({ id, depth }) => `${depth}${id}`);
	it("stand below the ones that caused them", () => {
		expect(tree([member("a", null), member("b", "a"), member("d", null), member("c", "b")])).toEqual([
			"0a",
			"1b",
			"2c",
			"0d",
		]);
	});
	it("begin anew where the parent is missing, and end where parents go round in a circle", () => {
		expect(tree([member("a", "gone")])).toEqual(["0a"]);
		expect(tree([member("a", "b"), member("b", "a")])).toEqual(["0a", "1b"]);
	});
});

it("asks for spans without a service by leaving it out", () => {
	const name = { service: null, name: "it's", kind: "server" };
	expect(slowestOf(name, "own", null)).toEqual({ counting: "own", kind: "server", name: "it's" });
	expect(slowestOf(name, "all", { trace: "t", id: "i" })).toMatchObject({ trace: "t", span: "i" });
});
