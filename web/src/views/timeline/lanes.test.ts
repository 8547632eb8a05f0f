import { describe, expect, it } from "vitest";
import type { ThreadRow } from "../../api/types";
import { Blocks, groupName, keepPlaces, laneSizes, lanesOf, orderThreads, visibleLanes } from "./lanes";
import { BLOCK_LANES } from "./tiles";

const thread = (pid: number, tid: number, time_ns: number, start = tid): ThreadRow => ({
	pid,
	tid,
	comm: `t${tid}`,
	process: `p${pid}`,
	parent: null,
	calls: 1,
	time_ns,
	start,
	end: null,
});

describe("the order of lanes", () => {
	const threads = [thread(1, 1, 5), thread(2, 2, 50), thread(1, 3, 100), thread(2, 4, 60)];
	it("keeps a process together, the one with the most time first, led by its first thread", () => {
		expect(orderThreads(threads, "time").map((t) => t.tid)).toEqual([2, 4, 1, 3]);
	});
	it("can be that of their beginning or name", () => {
		expect(orderThreads(threads, "start").map((t) => t.tid)).toEqual([1, 3, 2, 4]);
		expect(orderThreads([...threads].reverse(), "name").map((t) => t.tid)).toEqual([1, 3, 2, 4]);
	});
	it("stays while a recording runs: what is new comes below", () => {
		const before = orderThreads(threads, "time");
		const now = orderThreads([...threads, thread(9, 9, 1e9)], "time");
		expect(keepPlaces(before, now).map((t) => t.tid)).toEqual([2, 4, 1, 3, 9]);
	});
});

const NO_LANE = { members: [], group: null };

describe("lanes", () => {
	const child = (pid: number, parent: number | null, time_ns: number, process = `p${pid}`): ThreadRow => ({
		...thread(pid, pid, time_ns),
		parent,
		process,
		end: pid + 1,
	});
	const all = () => true;
	it("follow the process that started them, as far as it has a lane", () => {
		const threads = orderThreads([child(1, null, 1), child(2, null, 50), child(3, 1, 100), child(4, 3, 5)], "tree");
		expect(threads.map((t) => t.tid)).toEqual([1, 3, 4, 2]);
		expect(lanesOf(threads, all, new Set(), true).map((l) => l.depth)).toEqual([0, 1, 2, 0]);
	});
	it("are shared by many short processes of a name, until they are opened", () => {
		const bash = [11, 12, 13, 14].map((pid) => child(pid, 1, 1, "bash"));
		const threads = orderThreads([child(1, null, 1000), ...bash], "tree");
		const lanes = lanesOf(threads, all, new Set(), true);
		expect(lanes.map((l) => [l.group, l.members.length])).toEqual([
			[null, 1],
			["bash", 4],
		]);
		expect(groupName(lanes[1] ?? { members: [], group: null }, 1000)).toBe("4 short-lived bash");
		expect(lanesOf(threads, all, new Set(["bash"]), true)).toHaveLength(6);
		expect(lanesOf(threads, (tid) => tid === 12, new Set(), true).map((l) => l.members.length)).toEqual([1]);
	});
	it("are shared by a crowd that make -j starts, but for what stands out", () => {
		const compilers = Array.from({ length: 20 }, (_, i) => child(100 + i, 1, 50 + i, "cc1"));
		const threads = orderThreads([child(1, null, 10, "make"), ...compilers, child(200, 1, 900, "cc1")], "tree");
		const lanes = lanesOf(threads, all, new Set(), true);
		expect(lanes.map((l) => [l.group, l.members.length, l.thread.tid])).toEqual([
			[null, 1, 1],
			[null, 1, 200],
			["cc1", 20, 119],
		]);
		expect(groupName({ ...(lanes[2] ?? NO_LANE) }, 5)).toBe("20 cc1");
		expect(lanesOf(threads, all, new Set(["cc1"]), true)).toHaveLength(23);
		// A few of them, each with a good part of the time, have lanes of their own.
		expect(lanesOf(orderThreads(compilers.slice(0, 8), "tree"), all, new Set(), true)).toHaveLength(8);
	});
	it("end although numbers were given again", () => {
		const circle = [child(1, 2, 1), child(2, 1, 1), child(3, null, 1)];
		expect(lanesOf(orderThreads(circle, "tree"), all, new Set(), true)).toHaveLength(3);
	});
});

describe("blocks", () => {
	it("keep a thread where it was first put, whatever comes, goes or is reordered", () => {
		const blocks = new Blocks();
		const first = Array.from({ length: BLOCK_LANES + 2 }, (_, i) => thread(1, i + 1, 1));
		blocks.add(first);
		expect(blocks.of(1)).toEqual({ block: 0, lane: 0 });
		expect(blocks.of(BLOCK_LANES + 1)).toEqual({ block: 1, lane: 0 });
		blocks.add([thread(1, 99, 1), ...first.slice(3).reverse()]);
		expect(blocks.of(1)).toEqual({ block: 0, lane: 0 });
		expect(blocks.of(99)).toEqual({ block: 1, lane: 2 });
		expect(blocks.threads(1)).toEqual([BLOCK_LANES + 1, BLOCK_LANES + 2, 99]);
	});
	it("tell when they have more threads than before", () => {
		const blocks = new Blocks();
		blocks.add([thread(1, 1, 1)]);
		const before = blocks.version(0);
		blocks.add([thread(1, 1, 1)]);
		expect(blocks.version(0)).toBe(before);
		blocks.add([thread(1, 2, 1)]);
		expect(blocks.version(0)).toBeGreaterThan(before);
	});
});

it("makes lanes as high as fits", () => {
	expect(laneSizes(3, 800, 0)).toEqual({ spans: 0, calls: 56, states: 0, row: 0, high: 56 });
	expect(laneSizes(500, 800, 0).high).toBe(28);
	expect(visibleLanes(500, 28, 280, 280)).toEqual({ first: 10, last: 20 });
	// A row for each layer below the calls, larger where there is room.
	expect(laneSizes(2, 800, 5)).toEqual({ spans: 0, calls: 32, states: 0, row: 18, high: 32 + 5 * 18 + 4 });
	expect(laneSizes(500, 800, 5).high).toBe(32 + 5 * 12 + 4);
	expect(laneSizes(3, 800, 0, true)).toEqual({ spans: 0, calls: 56, states: 14, row: 0, high: 70 });
	expect(laneSizes(3, 800, 0, true, true)).toEqual({ spans: 26, calls: 56, states: 14, row: 0, high: 96 });
	expect(visibleLanes(3, 56, 0, 800)).toEqual({ first: 0, last: 2 });
});
