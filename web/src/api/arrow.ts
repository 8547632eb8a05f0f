// Arrow answers as typed arrays.

import { type Table, tableFromIPC, type Vector } from "apache-arrow";

/** An answer of columns with the description that came with it. */
export class Columns {
	readonly rows: number;
	readonly names: string[];
	/** The text under `fathom` in the schema's metadata. */
	readonly meta: Readonly<Record<string, unknown>>;
	private readonly numbers = new Map<string, Float64Array>();
	private readonly words = new Map<string, (string | null)[]>();
	private readonly listed = new Map<string, Float64Array[]>();

	constructor(private readonly table: Table) {
		this.rows = table.numRows;
		this.names = table.schema.fields.map((field) => field.name);
		this.meta = parseMeta(table.schema.metadata.get("fathom"));
	}

	static from(bytes: Uint8Array): Columns {
		return new Columns(tableFromIPC(bytes));
	}

	has(name: string): boolean {
		return this.table.getChild(name) !== null;
	}

	/** A column of numbers; null as NaN. A column that is not there is all NaN. */
	f64(name: string): Float64Array {
		const known = this.numbers.get(name);
		if (known) return known;
		const made = toNumbers(this.table.getChild(name), this.rows);
		this.numbers.set(name, made);
		return made;
	}

	/** A column as it is: texts, numbers, booleans, lists. */
	vector(name: string): Vector | null {
		return this.table.getChild(name);
	}

	/** The type of a column in Arrow's words; empty when there is none. */
	type(name: string): string {
		return this.table.schema.fields.find((field) => field.name === name)?.type.toString() ?? "";
	}

	/** One value as text; null stays null. */
	text(name: string, row: number): string | null {
		const value: unknown = this.table.getChild(name)?.get(row);
		return value === null || value === undefined ? null : String(value);
	}

	/** A column of texts. */
	texts(name: string): (string | null)[] {
		const known = this.words.get(name);
		if (known) return known;
		const vector = this.table.getChild(name);
		const made = new Array<string | null>(this.rows);
		for (let i = 0; i < this.rows; i += 1) {
			const value: unknown = vector?.get(i);
			made[i] = value === null || value === undefined ? null : String(value);
		}
		this.words.set(name, made);
		return made;
	}

	/** A column of truth values; null is false. */
	flags(name: string): boolean[] {
		const vector = this.table.getChild(name);
		return Array.from({ length: this.rows }, (_, i) => vector?.get(i) === true);
	}

	/** A column of texts of which few differ: an index per row (-1 for null) into the values. */
	codes(name: string): { codes: Int32Array; values: string[] } {
		const vector = this.table.getChild(name);
		const codes = new Int32Array(this.rows).fill(-1);
		const values: string[] = [];
		const known = new Map<string, number>();
		for (let i = 0; i < this.rows; i += 1) {
			const value: unknown = vector?.get(i);
			if (value === null || value === undefined) continue;
			const text = String(value);
			let code = known.get(text);
			if (code === undefined) {
				code = values.length;
				known.set(text, code);
				values.push(text);
			}
			codes[i] = code;
		}
		return { codes, values };
	}

	/** A column of lists of numbers, one list a row. */
	lists(name: string): Float64Array[] {
		const known = this.listed.get(name);
		if (known) return known;
		const made = toLists(this.table.getChild(name), this.rows);
		this.listed.set(name, made);
		return made;
	}

	metaNumber(name: string): number | null {
		const value = this.meta[name];
		return typeof value === "number" && Number.isFinite(value) ? value : null;
	}

	metaFlag(name: string): boolean | null {
		const value = this.meta[name];
		return typeof value === "boolean" ? value : null;
	}

	metaText(name: string): string | null {
		const value = this.meta[name];
		return typeof value === "string" ? value : null;
	}
}

function parseMeta(text: string | undefined): Record<string, unknown> {
	if (text === undefined) return {};
	try {
		const value: unknown = JSON.parse(text);
		return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
	} catch {
		return {};
	}
}

function toLists(vector: Vector | null, rows: number): Float64Array[] {
	const data = vector?.data.length === 1 ? vector.data[0] : undefined;
	const numbers: unknown = data?.children[0]?.values;
	const offsets: unknown = data?.valueOffsets;
	// Views into the answer: an object of Arrow's for each of thousands of lists costs more than all else.
	if (data?.nullCount === 0 && numbers instanceof Float64Array && offsets instanceof Int32Array) {
		return Array.from({ length: rows }, (_, i) => numbers.subarray(offsets[i] ?? 0, offsets[i + 1] ?? 0));
	}
	return Array.from({ length: rows }, (_, i) => {
		const list = vector?.get(i) as Vector | null | undefined;
		return list ? toNumbers(list, list.length) : new Float64Array(0);
	});
}

function toNumbers(vector: Vector | null, rows: number): Float64Array {
	if (!vector) return new Float64Array(rows).fill(Number.NaN);
	if (vector.nullCount === 0) {
		const array: unknown = vector.toArray();
		// A view into the answer, without a copy, which is what the server sends.
		if (array instanceof Float64Array) return array;
	}
	const made = new Float64Array(rows);
	for (let i = 0; i < rows; i += 1) {
		const value: unknown = vector.get(i);
		made[i] = value === null || value === undefined ? Number.NaN : Number(value);
	}
	return made;
}
