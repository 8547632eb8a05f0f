import { tableFromArrays, tableToIPC } from "apache-arrow";
import { describe, expect, it } from "vitest";
import { Columns } from "../../api/arrow";
import type { Filter } from "../../api/types";
import { culpritName, filtered, heldOf, isIdle, isItself, matrixOf, partyName, resourcesOf, sorted } from "./held";

const answer = await Columns.read(
	tableToIPC(
		tableFromArrays({
			resource: ["futex", "vda", "vda", "futex"],
			kind: ["wake_up", "device", "device", "wake_up"],
			victim_id: [1, 1, 2, 3],
			victim: ["a", "a", "b\n", null],
			victim_known: [true, true, true, false],
			culprit_id: [2, 1, null, null],
			culprit: ["b\n", "a", null, "kworker"],
			culprit_known: [true, true, false, false],
			has_culprit: [true, true, false, true],
			time_ns: [100, 40, 70, 5],
			share: [1, 0.5, 1, 1],
		}),
	),
);
const rows = heldOf(answer);

describe("who held whom up", () => {
	it("has names, also for those that are not known", () => {
		expect(rows.map((row) => partyName(row.victim))).toEqual(["a 1", "a 1", "b\\n 2", "? 3"]);
		expect(rows.map(culpritName)).toEqual(["b\\n 2", "a 1", "none, or not known", "kworker"]);
		expect(rows.map(isItself)).toEqual([false, true, false, false]);
	});

	it("pass a filter by the one that waited or the one that held it up", () => {
		const victims = (by: "process" | "thread", filter: Filter) =>
			filtered(rows, by, filter).map((row) => `${partyName(row.victim)} < ${culpritName(row)}`);
		expect(filtered(rows, "process", {})).toEqual(rows);
		expect(filtered(rows, "process", { tid: [99], path: "/x" })).toEqual(rows);
		expect(victims("process", { pid: [2] })).toEqual(["a 1 < b\\n 2", "b\\n 2 < none, or not known"]);
		expect(victims("thread", { tid: [3] })).toEqual(["? 3 < kworker"]);
		expect(victims("thread", { comm: ["kworker"] })).toEqual(["? 3 < kworker"]);
		expect(victims("process", { not_comm: ["a", "b\n"] })).toEqual(["? 3 < kworker"]);
	});

	it("are idle in poll and until their own timers", () => {
		const party = (id: number) => ({ id, name: "a", known: true });
		const held = (resource: string, culprit: number | null) => ({
			resource,
			kind: "wake_up",
			victim: party(1),
			culprit: culprit === null ? null : party(culprit),
			time: 1,
			share: 1,
		});
		const waits = [held("poll", 2), held("timer", 1), held("timer", null), held("timer", 2), held("futex", 2)];
		expect(waits.map(isIdle)).toEqual([true, true, true, false, false]);
	});

	it("is sorted, and summed up by resource", () => {
		expect(sorted(rows, "time").map((row) => row.time)).toEqual([100, 70, 40, 5]);
		expect(sorted(rows, "share").map((row) => row.share)).toEqual([1, 1, 1, 0.5]);
		expect(sorted(rows, "culprit").map(culpritName)).toEqual(["a 1", "b\\n 2", "kworker", "none, or not known"]);
		expect(resourcesOf(rows)).toEqual([
			{ resource: "vda", time: 110 },
			{ resource: "futex", time: 105 },
		]);
	});

	it("is a matrix that adds up with its rest", () => {
		const all = matrixOf(rows, 10);
		expect(all.victims).toEqual(["a 1", "b\\n 2", "? 3"]);
		expect(all.cells[0]?.[all.culprits.indexOf("b\\n 2")]).toBe(100);
		expect(all.cells.flat().reduce((a, b) => a + b, 0) + all.rest).toBe(215);
		expect([all.most, all.rest]).toEqual([100, 0]);
		const one = matrixOf(rows, 1);
		expect([one.victims, one.culprits, one.cells, one.rest]).toEqual([["a 1"], ["b\\n 2"], [[100]], 115]);
	});
});
