import {
	Bool,
	Dictionary,
	Field,
	Float32,
	Float64,
	Int32,
	Int64,
	List,
	RecordBatch,
	Schema,
	Struct,
	Table,
	tableToIPC,
	Utf8,
	vectorFromArray,
} from "apache-arrow";
import { describe, expect, it } from "vitest";
import { readAnyFrame } from "./anyipc";
import { Columns } from "./arrow";
import { type Frame, type Lists, readFrame } from "./ipc";

const NUMBERS = [1.5, null, -3, 0];
const table = new Table({
	whole: vectorFromArray([1, 2, 3, 4], new Float64()),
	holes: vectorFromArray(NUMBERS, new Float64()),
	text: vectorFromArray(["a", null, "", "long text"], new Utf8()),
	foreign: vectorFromArray(["é", "日本", null, "z"], new Utf8()),
	word: vectorFromArray(["x", null, "y", "x"], new Dictionary(new Utf8(), new Int32())),
	flag: vectorFromArray([true, null, false, true], new Bool()),
	int: vectorFromArray([1, null, -1, 7], new Int32()),
	long: vectorFromArray([1n, 2n, null, -(2n ** 60n)], new Int64()),
	list: vectorFromArray([[1, 2], [], [3], [4, 5, 6]], new List(new Field("item", new Float64(), false))),
	few: vectorFromArray([[1], null, [], [2]], new List(new Field("item", new Float64(), false))),
});

function ipc(of: Table, about?: string): Uint8Array {
	if (about === undefined) return tableToIPC(of, "stream");
	const schema = new Schema(of.schema.fields, new Map([["fathom", about]]));
	return tableToIPC(new Table(of.batches.map((batch) => new RecordBatch(schema, batch.data))), "stream");
}

function read(bytes: Uint8Array): Frame {
	const frame = readFrame(bytes);
	if (!frame) throw new Error("it is not known");
	return frame;
}

/** As plain values: lists are of other classes in the library. */
function values(frame: Frame, name: string): unknown[] {
	const plain = (value: unknown) =>
		typeof value === "object" && value !== null ? [...(value as Iterable<unknown>)] : value;
	return Array.from({ length: frame.rows }, (_, row) => plain(frame.column(name)?.get(row)));
}

const rowsOf = (lists: Lists) => Array.from({ length: lists.length }, (_, i) => [...lists.row(i)]);

describe("streams of the server's types", () => {
	const bytes = ipc(table, '{"n":1}');

	it("are as the library reads them", () => {
		const [own, theirs] = [read(bytes), readAnyFrame(bytes)];
		expect(own.rows).toBe(4);
		expect(own.about).toBe('{"n":1}');
		expect(own.fields).toEqual(theirs.fields);
		for (const { name } of own.fields) expect(values(own, name), name).toEqual(values(theirs, name));
	});

	it("are as the library reads them at any place in memory", () => {
		for (const shift of [1, 4, 8]) {
			const moved = new Uint8Array(bytes.length + shift);
			moved.set(bytes, shift);
			const own = read(moved.subarray(shift));
			const theirs = readAnyFrame(bytes);
			for (const { name } of own.fields) expect(values(own, name), name).toEqual(values(theirs, name));
		}
	});

	it("are views where nothing is missing", () => {
		const frame = read(bytes);
		expect(frame.column("whole")?.floats()?.buffer).toBe(bytes.buffer);
		expect(frame.column("holes")?.floats()).toBeNull();
		expect(frame.column("text")?.floats()).toBeNull();
		expect(frame.column("list")?.lists()?.row(3).buffer).toBe(bytes.buffer);
		expect(frame.column("none")).toBeNull();
	});

	it("are columns, whoever read them", async () => {
		for (const columns of [await Columns.read(bytes), new Columns(readAnyFrame(bytes))]) {
			expect([...columns.f64("holes")]).toEqual([1.5, Number.NaN, -3, 0]);
			expect([...columns.f64("long")]).toEqual([1, 2, Number.NaN, -(2 ** 60)]);
			expect([...columns.f64("none")]).toEqual([Number.NaN, Number.NaN, Number.NaN, Number.NaN]);
			expect(columns.texts("foreign")).toEqual(["é", "日本", null, "z"]);
			expect(columns.flags("flag")).toEqual([true, false, false, true]);
			expect(columns.codes("word")).toEqual({ codes: Int32Array.from([0, -1, 1, 0]), values: ["x", "y"] });
			expect(rowsOf(columns.lists("list"))).toEqual([[1, 2], [], [3], [4, 5, 6]]);
			expect(rowsOf(columns.lists("few"))).toEqual([[1], [], [], [2]]);
			expect(columns.metaNumber("n")).toBe(1);
		}
	});

	it("may have no rows", () => {
		const empty = ipc(table.slice(0, 0), "{}");
		const frame = readFrame(empty) ?? readAnyFrame(empty);
		expect(frame.rows).toBe(0);
		for (const { name } of frame.fields) expect(values(frame, name)).toEqual([]);
	});
});

describe("other streams", () => {
	it("are left to the library", async () => {
		const others = [
			new Table({ small: vectorFromArray([1, 2], new Float32()) }),
			new Table({ pair: vectorFromArray([{ a: 1 }], new Struct([new Field("a", new Float64())])) }),
			new Table({ ints: vectorFromArray([[1]], new List(new Field("item", new Int32(), true))) }),
			new Table({ n: vectorFromArray([1], new Float64()) }).concat(
				new Table({ n: vectorFromArray([2], new Float64()) }),
			),
		];
		for (const other of others) expect(readFrame(ipc(other))).toBeNull();
		expect([...(await Columns.read(ipc(others[3] as Table))).f64("n")]).toEqual([1, 2]);
	});

	it("are refused when they are cut off", () => {
		const bytes = ipc(table);
		for (let length = 8; length < bytes.length - 16; length += 8) {
			const cut = bytes.slice(0, length);
			try {
				expect(readFrame(cut)?.rows ?? 0).toBe(0);
			} catch (error) {
				expect(error).toBeInstanceOf(RangeError);
			}
		}
	});
});
