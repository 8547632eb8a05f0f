import { expect, it } from "vitest";
import type { Columns } from "../api/arrow";
import { Lists } from "../api/ipc";
import { isThing, PAGE_FAULT, ranked, rowKey, sumsOf, thingOf } from "./sums";

function tiles(columns: Record<string, unknown[]>) {
	const of = (name: string) => columns[name] ?? [];
	return {
		rows: of("key").length,
		f64: (name: string) => Float64Array.from(of(name) as number[]),
		texts: (name: string) => of(name) as (string | null)[],
		flags: (name: string) => of(name) as boolean[],
		lists: (name: string) => Lists.of(of(name) as number[][]),
		has: (name: string) => name in columns,
		metaNumber: () => null,
	};
}

it("adds buckets up by key, tells the rest from calls without a key, and keeps the longest", () => {
	const sums = sumsOf(
		tiles({
			key: ["7", "7", null, null],
			label: ["/a", "/a", null, null],
			rest: [false, false, true, false],
			at_least: [false, true, false, false],
			calls: [1, 2, 100, 5],
			errors: [0, 1, 0, 0],
			bytes: [10, Number.NaN, 1, 1],
			time_ns: [50, 60, 1000, 7],
			max_ns: [50, 40, 9, 7],
			latency: [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 2], [0, 100], [5]],
		}),
	);
	expect(sums.map((s) => [s.key, s.rest, s.calls, s.time])).toEqual([
		["7", false, 3, 110],
		[null, false, 5, 7],
		[null, true, 100, 1000],
	]);
	expect(sums[0]).toMatchObject({ label: "/a", errors: 1, bytes: 10, max: 50, atLeast: true, slight: false });
	expect(sums[0]?.p99).toBeGreaterThan(32);
	expect(sums[0]?.p99).toBeLessThanOrEqual(64);
});

it("says when what may be missing makes no difference", () => {
	const of = (rest: number) =>
		sumsOf(
			tiles({
				key: ["7", null],
				label: ["/a", null],
				rest: [false, true],
				at_least: [true, false],
				calls: [1, 1],
				errors: [0, 0],
				bytes: [0, 0],
				time_ns: [1000, rest],
				max_ns: [1000, rest],
			}),
		)[0];
	expect(of(4)).toMatchObject({ atLeast: true, slight: true });
	expect(of(400)).toMatchObject({ atLeast: true, slight: false });
});

it("leads from paths that count together to their directory", () => {
	const columns: Record<string, unknown[]> = {
		key: ["/out.tar", null, null],
		label: ["/out.tar", null, null],
		directory: [null, "/doc", null],
		paths: [1, 61, 1],
		elsewhere: [0, 1, 0],
		file: [7, Number.NaN, Number.NaN],
		files: [1, 0, 0],
		time_ns: [90, 61, 3],
	};
	const of = (name: string) => columns[name] ?? [];
	const [out, docs, none] = ranked({
		rows: 3,
		texts: of,
		f64: (name: string) => Float64Array.from(of(name) as number[]),
		has: (name: string) => name in columns,
	} as unknown as Columns);
	if (!out || !docs || !none) throw new Error("three rows");
	expect([out, docs, none].map(isThing)).toEqual([true, true, false]);
	expect(thingOf(out, "full_path")).toEqual({ member: "full_path", value: "/out.tar", label: "/out.tar", file: 7 });
	expect(thingOf(docs, "full_path")).toEqual({
		member: "path",
		value: "/doc/",
		label: "61 paths, all but 1 in /doc",
	});
	expect(thingOf({ ...docs, directory: "/" }, "full_path").value).toBe("/");
	expect(isThing({ ...docs, directory: "/" })).toBe(false);
	// A directory that was opened itself has a row, too.
	expect(rowKey({ ...out, key: "/doc" })).not.toBe(rowKey(docs));
	expect(rowKey({ ...out, key: "none" })).not.toBe(rowKey(none));
});

it("adds the time of page faults, which are no calls", () => {
	const columns: Record<string, unknown[]> = {
		key: ["page fault", "pread64"],
		label: ["page fault", "pread64"],
		rest: [false, false],
		calls: [0, 3],
		time_ns: [0, 50],
		faults: [7, 0],
		fault_ns: [900, 0],
	};
	const [fault, read] = sumsOf(tiles({ ...columns, errors: [], bytes: [], max_ns: [] }));
	expect(fault).toMatchObject({ key: PAGE_FAULT, calls: 0, faults: 7, inFaults: 900, busy: 900 });
	expect(read).toMatchObject({ calls: 3, busy: 50 });
	const of = (name: string) => columns[name] ?? [];
	const top = ranked({
		rows: 2,
		texts: of,
		f64: (name: string) => Float64Array.from(of(name) as number[]),
		has: (name: string) => name in columns,
	} as unknown as Columns);
	expect(top.map(({ busy, faults }) => [busy, faults])).toEqual([
		[900, 7],
		[50, 0],
	]);
	// No filter selects them.
	expect(top.map(isThing)).toEqual([false, true]);
});
