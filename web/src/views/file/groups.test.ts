import { describe, expect, it } from "vitest";
import { distinctNames, entriesOf, type FileRow, firstOf, grouped, isFolder, parseFiles, sumOf } from "./groups";

const row = (file: number, path: string | null, bytes: number, time = 1): FileRow => ({
	file,
	path,
	bytes,
	read: bytes,
	written: 0,
	calls: 1,
	time,
	faults: 0,
	type: "regular",
});

describe("files", () => {
	it("with one path are one entry", () => {
		const entries = entriesOf([row(1, "/a/wal", 10), row(2, "/a/wal", 5), row(3, null, 1), row(4, null, 1)]);
		expect(entries.map((e) => [e.files, e.bytes])).toEqual([
			[[1, 2], 15],
			[[3], 1],
			[[4], 1],
		]);
	});

	it("stand in their directories when there are many, those of the system last", () => {
		const many = [1, 2, 3, 4].map((n) => row(n, `/data/part${n}`, n));
		const system = [5, 6, 7, 8].map((n) => row(n, `/usr/lib/${n}.so`, 1000));
		const items = grouped([row(9, "/home/x", 7), ...many, ...system], "bytes", false);
		expect(items.map((item) => (isFolder(item) ? item.path : item.path))).toEqual(["/data", "/home/x", ""]);
		expect(items.map((item) => sumOf(item, "bytes"))).toEqual([10, 7, 4000]);
		expect(grouped(many, "bytes", true).map((item) => item.path)).toEqual([4, 3, 2, 1].map((n) => `/data/part${n}`));
	});

	it("of libraries and interpreters are the system's wherever they are installed", () => {
		const modules = [1, 2, 3, 4].map((n) => row(n, `/root/py/lib/python3.11/__pycache__/m${n}.pyc`, 1000, 1));
		const items = grouped([row(9, "/srv/app.log", 7, 50), ...modules], "time_ns", false);
		expect(items.map((item) => [item.path, sumOf(item, "time_ns")])).toEqual([
			["/srv/app.log", 50],
			["", 4],
		]);
		expect(firstOf(items, "time_ns")?.path).toBe("/srv/app.log");
	});

	it("of a directory of the system that holds the time are not folded with the others", () => {
		const docs = ["a", "b", "c", "d"].map((n, i) => row(i, `/usr/share/doc/${n}/copyright`, 10, 20));
		const libraries = [5, 6, 7, 8].map((n) => row(n, `/usr/lib/x86_64/lib${n}.so.6`, 1000, 1));
		const items = grouped([...libraries, ...docs, row(9, "/root/out.tar", 5, 30)], "time_ns", false);
		expect(items.map((item) => [item.path, sumOf(item, "time_ns")])).toEqual([
			["/usr/share/doc", 80],
			["/root/out.tar", 30],
			["", 4],
		]);
	});

	it("open with the first that has offsets to show", () => {
		const items = grouped([row(1, "/srv", 0, 90), row(2, "/srv/data", 5, 10)], "time_ns", false);
		expect(items.map((item) => item.path)).toEqual(["/srv", "/srv/data"]);
		expect(firstOf(items, "time_ns")?.files).toEqual([2]);
		const both = grouped([row(1, "/srv/a", 5, 90), row(2, "/srv/data", 5, 10)], "time_ns", false);
		expect(firstOf(both, "time_ns", new Set(["2"]))?.files).toEqual([2]);
		expect(firstOf(both, "time_ns", new Set())).toBeUndefined();
		// Bytes of entries of a directory, and of a pipe.
		const others = [
			{ ...row(3, "/srv/d", 900, 90), read: 0, type: "directory" },
			{ ...row(4, "pipe:[7]", 900, 80), type: "fifo" },
		];
		const mapped = { ...row(5, "/srv/mapped", 0, 50), faults: 3 };
		const first = (more: FileRow[]) => firstOf(grouped([...others, ...more], "time_ns", false), "time_ns")?.files;
		expect(first([row(2, "/srv/data", 5, 10)])).toEqual([2]);
		expect(first([row(2, "/srv/data", 5, 10), mapped])).toEqual([5]);
		expect(first([])).toBeUndefined();
		const system = ["a", "b", "c", "d"].map((n, i) => row(i, `/usr/lib/${n}.so`, 9, 1));
		expect(first(system)).toEqual([0]);
	});

	it("are named by the ends of their paths that differ", () => {
		const names = distinctNames([
			"/doc/a/copyright",
			"/doc/b/copyright",
			"/x/b/copyright",
			"/doc/a/README",
			"copyright",
		]);
		expect([...names].sort()).toEqual([
			["/doc/a/README", "README"],
			["/doc/a/copyright", "a/copyright"],
			["/doc/b/copyright", "doc/b/copyright"],
			["/x/b/copyright", "x/b/copyright"],
			["copyright", "copyright"],
		]);
	});

	it("are ids in an address", () => {
		expect(parseFiles("3,7,3,x,-1,")).toEqual([3, 7]);
		expect(parseFiles("")).toEqual([]);
	});
});
