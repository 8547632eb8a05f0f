// Arrow streams as fathom's addresses send them: one batch, columns of few types. What else there may be, such as results
// of SQL, is left to the library, which is as large as the rest of the page and only fetched for that.

/** A list of numbers for each row, all in one array: an object for each of thousands of lists costs more than all else. */
export class Lists {
	constructor(
		readonly values: Float64Array,
		/** The list of row `i` has the values from `ends[i]` up to `ends[i + 1]`. */
		readonly ends: Int32Array,
	) {}

	static of(lists: readonly ArrayLike<number>[]): Lists {
		const ends = new Int32Array(lists.length + 1);
		lists.forEach((list, i) => {
			ends[i + 1] = (ends[i] ?? 0) + list.length;
		});
		const values = new Float64Array(ends[lists.length] ?? 0);
		lists.forEach((list, i) => {
			values.set(list, ends[i]);
		});
		return new Lists(values, ends);
	}

	get length(): number {
		return this.ends.length - 1;
	}

	/** A view of one list; empty for a row that is not there. */
	row(i: number): Float64Array {
		return this.values.subarray(this.ends[i] ?? 0, this.ends[i + 1] ?? 0);
	}
}

/** A column as views read it. */
export interface Column {
	/** A value as the script has it; null where there is none. */
	get(row: number): unknown;
	/** The numbers without a copy; null unless it is a column of 64-bit floats that has them all. */
	floats(): Float64Array | null;
	/** The lists without a copy; null unless it is a column of lists of such numbers. */
	lists(): Lists | null;
}

/** A table of columns. */
export interface Frame {
	rows: number;
	fields: readonly { name: string; type: string }[];
	/** The text under `fathom` in the metadata. */
	about: string | undefined;
	column(name: string): Column | null;
}

/** Kinds of messages. */
const SCHEMA = 1;
const DICTIONARY = 2;
const BATCH = 3;
/** Types of fields. */
const INT = 2;
const FLOAT = 3;
const UTF8 = 5;
const BOOL = 6;
const LIST = 12;

/** A table of a flatbuffer: its fields by number. */
class Fields {
	private readonly offsets: number;

	constructor(
		private readonly view: DataView,
		private readonly at: number,
	) {
		this.offsets = at - view.getInt32(at, true);
	}

	/** Where a field is; 0 when it is left out. */
	place(field: number): number {
		const entry = 4 + 2 * field;
		if (entry >= this.view.getUint16(this.offsets, true)) return 0;
		const offset = this.view.getUint16(this.offsets + entry, true);
		return offset === 0 ? 0 : this.at + offset;
	}

	byte(field: number): number {
		const at = this.place(field);
		return at === 0 ? 0 : this.view.getUint8(at);
	}

	short(field: number): number {
		const at = this.place(field);
		return at === 0 ? 0 : this.view.getInt16(at, true);
	}

	int(field: number): number {
		const at = this.place(field);
		return at === 0 ? 0 : this.view.getInt32(at, true);
	}

	long(field: number): number {
		const at = this.place(field);
		return at === 0 ? 0 : Number(this.view.getBigInt64(at, true));
	}

	table(field: number): Fields | null {
		const at = this.place(field);
		return at === 0 ? null : new Fields(this.view, at + this.view.getInt32(at, true));
	}

	/** Where the elements of a list begin, and how many there are. */
	list(field: number): { at: number; length: number } {
		const place = this.place(field);
		if (place === 0) return { at: 0, length: 0 };
		const at = place + this.view.getInt32(place, true);
		return { at: at + 4, length: this.view.getInt32(at, true) };
	}

	tables(field: number): Fields[] {
		const { at, length } = this.list(field);
		return Array.from({ length }, (_, i) => {
			const entry = at + 4 * i;
			return new Fields(this.view, entry + this.view.getInt32(entry, true));
		});
	}

	text(field: number): string {
		const { at, length } = this.list(field);
		return decoder.decode(new Uint8Array(this.view.buffer, this.view.byteOffset + at, length));
	}

	/** A list of pairs of 64-bit numbers. */
	pairs(field: number): [number, number][] {
		const { at, length } = this.list(field);
		const number = (place: number) => Number(this.view.getBigInt64(place, true));
		return Array.from({ length }, (_, i) => [number(at + 16 * i), number(at + 16 * i + 8)]);
	}
}

const decoder = new TextDecoder();

interface Field {
	name: string;
	type: string;
	/** The type of the values: the indices of a dictionary are others. */
	kind: "int" | "float" | "utf8" | "bool" | "list";
	signed: boolean;
	bits: number;
	/** Number of the dictionary; null without one. */
	dictionary: number | null;
}

/** A field of a type that is known here; null for others. */
function fieldOf(from: Fields): Field | null {
	const name = from.text(0);
	const type = from.table(3);
	const known = type && kindOf(from, type);
	if (!known) return null;
	const encoding = from.table(4);
	if (!encoding) return { name, ...known, dictionary: null };
	const index = encoding.table(1);
	if (known.kind !== "utf8" || (index && (index.int(0) !== 32 || index.byte(1) === 0))) return null;
	return { name, ...known, type: `Dictionary<Int32, ${known.type}>`, dictionary: encoding.long(0) };
}

type Kind = Pick<Field, "type" | "kind" | "signed" | "bits">;

function kindOf(from: Fields, type: Fields): Kind | null {
	switch (from.byte(2)) {
		case INT: {
			const [bits, signed] = [type.int(0), type.byte(1) !== 0];
			return { type: `${signed ? "Int" : "Uint"}${bits}`, kind: "int", signed, bits };
		}
		case FLOAT:
			return type.short(0) === 2 ? { type: "Float64", kind: "float", signed: true, bits: 64 } : null;
		case UTF8:
			return { type: "Utf8", kind: "utf8", signed: false, bits: 8 };
		case BOOL:
			return { type: "Bool", kind: "bool", signed: false, bits: 1 };
		case LIST: {
			const item = from.tables(5)[0];
			const inner = item && fieldOf(item);
			return inner?.type === "Float64" ? { type: "List<Float64>", kind: "list", signed: true, bits: 64 } : null;
		}
		default:
			return null;
	}
}

/** The buffers of a batch, taken one after the other. */
class Buffers {
	private readonly nodes: [number, number][];
	private readonly places: [number, number][];
	private node = 0;
	private buffer = 0;

	constructor(
		batch: Fields,
		private readonly body: Uint8Array,
	) {
		this.nodes = batch.pairs(1);
		this.places = batch.pairs(2);
	}

	/** Length and number of nulls of the next column. */
	next(): [number, number] {
		const node = this.nodes[this.node];
		this.node += 1;
		if (!node) throw new RangeError("a batch has fewer columns than its schema");
		return node;
	}

	bytes(): Uint8Array {
		const place = this.places[this.buffer];
		this.buffer += 1;
		if (!place || place[0] + place[1] > this.body.length) throw new RangeError("a batch is shorter than it says");
		return this.body.subarray(place[0], place[0] + place[1]);
	}

	/** A buffer as numbers of so many bytes: a view where it lies as they need it. */
	aligned(bytes: number): Uint8Array {
		const found = this.bytes();
		return found.byteOffset % bytes === 0 ? found : found.slice();
	}
}

function bit(bits: Uint8Array, i: number): boolean {
	return (((bits[i >> 3] ?? 0) >> (i & 7)) & 1) === 1;
}

/** Whole numbers by their bits; negative bits for unsigned ones. */
const INTEGERS = new Map<number, new (buffer: ArrayBufferLike, at: number, length: number) => Values>([
	[8, Int8Array],
	[16, Int16Array],
	[32, Int32Array],
	[64, BigInt64Array],
	[-8, Uint8Array],
	[-16, Uint16Array],
	[-32, Uint32Array],
	[-64, BigUint64Array],
]);

type Values = { readonly [index: number]: number | bigint; readonly length: number };

function integers({ buffer, byteOffset, byteLength }: Uint8Array, bits: number, signed: boolean): Values {
	const make = INTEGERS.get(signed ? bits : -bits);
	if (!make) throw new RangeError(`there are no numbers of ${bits} bits`);
	return new make(buffer, byteOffset, (byteLength * 8) / bits);
}

function offsetsOf({ buffer, byteOffset, byteLength }: Uint8Array): Int32Array {
	return new Int32Array(buffer, byteOffset, byteLength >> 2);
}

function columnOf(buffers: Buffers, field: Field, dictionaries: ReadonlyMap<number, Column>): Column {
	const [rows, nulls] = buffers.next();
	const bits = buffers.bytes();
	const there = (row: number) => row >= 0 && row < rows && (nulls === 0 || bit(bits, row));
	const plain = { floats: () => null, lists: () => null };
	if (field.dictionary !== null) {
		const words = dictionaries.get(field.dictionary);
		const codes = offsetsOf(buffers.aligned(4));
		if (!words) throw new RangeError("a dictionary is missing");
		return { ...plain, get: (row) => (there(row) ? words.get(codes[row] ?? -1) : null) };
	}
	switch (field.kind) {
		case "int": {
			const values = integers(buffers.aligned(8), field.bits, field.signed);
			return { ...plain, get: (row) => (there(row) ? (values[row] ?? null) : null) };
		}
		case "float": {
			const { buffer, byteOffset } = buffers.aligned(8);
			const values = new Float64Array(buffer, byteOffset, rows);
			return { ...plain, get: (row) => (there(row) ? values[row] : null), floats: () => (nulls === 0 ? values : null) };
		}
		case "bool": {
			const values = buffers.bytes();
			return { ...plain, get: (row) => (there(row) ? bit(values, row) : null) };
		}
		case "utf8":
			return { ...plain, get: textsOf(buffers, there) };
		case "list": {
			const offsets = offsetsOf(buffers.aligned(4));
			const [length, innerNulls] = buffers.next();
			buffers.bytes();
			const { buffer, byteOffset } = buffers.aligned(8);
			const values = new Float64Array(buffer, byteOffset, length);
			if (innerNulls > 0) throw new RangeError("a list has nulls");
			const list = (row: number) => values.subarray(offsets[row] ?? 0, offsets[row + 1] ?? 0);
			return {
				floats: () => null,
				get: (row) => (there(row) ? list(row) : null),
				lists: () =>
					nulls === 0
						? new Lists(values, offsets.subarray(0, rows + 1))
						: Lists.of(Array.from({ length: rows }, (_, row) => (there(row) ? list(row) : []))),
			};
		}
	}
}

/** Texts by row. Where all are ASCII they are parts of one. */
function textsOf(buffers: Buffers, there: (row: number) => boolean): (row: number) => string | null {
	const offsets = offsetsOf(buffers.aligned(4));
	const bytes = buffers.bytes();
	let all: string | null = null;
	return (row) => {
		if (!there(row)) return null;
		all ??= decoder.decode(bytes);
		const [from, to] = [offsets[row] ?? 0, offsets[row + 1] ?? 0];
		return all.length === bytes.length ? all.slice(from, to) : decoder.decode(bytes.subarray(from, to));
	};
}

interface Message {
	kind: number;
	header: Fields;
	body: Uint8Array;
}

function* messages(bytes: Uint8Array): Generator<Message> {
	const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
	for (let at = 0; at + 8 <= bytes.length; ) {
		if (view.getInt32(at, true) !== -1) throw new RangeError("a stream of another version");
		const size = view.getInt32(at + 4, true);
		// The end of the stream.
		if (size === 0) return;
		const start = at + 8;
		const message = new Fields(view, start + view.getInt32(start, true));
		const header = message.table(2);
		const body = start + size;
		const length = message.long(3);
		if (!header || body + length > bytes.length) throw new RangeError("a stream is shorter than it says");
		yield { kind: message.byte(1), header, body: bytes.subarray(body, body + length) };
		at = body + length;
	}
}

/** The table in a stream; null when it has something that is not known here. */
export function readFrame(bytes: Uint8Array): Frame | null {
	let fields: Field[] | null = null;
	let about: string | undefined;
	let frame: Frame | null = null;
	const dictionaries = new Map<number, Column>();
	for (const { kind, header, body } of messages(bytes)) {
		if (kind === SCHEMA) {
			const known = header.tables(1).map(fieldOf);
			if (!known.every((field) => field !== null)) return null;
			fields = known;
			about = header
				.tables(2)
				.find((entry) => entry.text(0) === "fathom")
				?.text(1);
		} else if (kind === DICTIONARY) {
			const batch = header.table(1);
			const id = header.long(0);
			const field = fields?.find((f) => f.dictionary === id);
			// Parts of a dictionary, and compressed ones.
			if (!batch || !field || header.byte(2) !== 0 || dictionaries.has(id) || batch.place(3) !== 0) return null;
			dictionaries.set(id, columnOf(new Buffers(batch, body), { ...field, dictionary: null }, dictionaries));
		} else if (kind === BATCH) {
			// Several batches, and compressed ones.
			if (!fields || frame !== null || header.place(3) !== 0) return null;
			const buffers = new Buffers(header, body);
			const columns = new Map(fields.map((field) => [field.name, columnOf(buffers, field, dictionaries)]));
			const named = fields.map(({ name, type }) => ({ name, type }));
			frame = { rows: header.long(0), fields: named, about, column: (name) => columns.get(name) ?? null };
		} else return null;
	}
	return frame;
}
