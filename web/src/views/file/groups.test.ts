import { describe, expect, it } from "vitest";
import { entriesOf, type FileRow, grouped, isFolder, parseFiles, sumOf } from "./groups";

const row = (file: number, path: string | null, bytes: number): FileRow => ({
	file,
	path,
	bytes,
	read: bytes,
	written: 0,
	calls: 1,
	time: 1,
	faults: 0,
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

	it("are ids in an address", () => {
		expect(parseFiles("3,7,3,x,-1,")).toEqual([3, 7]);
		expect(parseFiles("")).toEqual([]);
	});
});
