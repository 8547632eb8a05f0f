// Arrow answers as typed arrays.

import { type Column, type Frame, Lists, readFrame } from "./ipc";

/** An answer of columns with the description that came with it. */
export class Columns {
	readonly rows: number;
	readonly names: string[];
	/** The text under `fathom` in the schema's metadata. */
	readonly meta: Readonly<Record<string, unknown>>;
	private readonly numbers = new Map<string, Float64Array>();
	private readonly words = new Map<string, (string | null)[]>();
	private readonly listed = new Map<string, Lists>();

	constructor(private readonly frame: Frame) {
		this.rows = frame.rows;
		this.names = frame.fields.map((field) => field.name);
		this.meta = parseMeta(frame.about);
	}

	static async read(bytes: Uint8Array): Promise<Columns> {
		const frame = readFrame(bytes) ?? (await import("./anyipc")).readAnyFrame(bytes);
		return new Columns(frame);
	}

	has(name: string): boolean {
		return this.frame.column(name) !== null;
	}

	/** A column of numbers; null as NaN. A column that is not there is all NaN. */
	f64(name: string): Float64Array {
		const known = this.numbers.get(name);
		if (known) return known;
		const made = toNumbers(this.frame.column(name), this.rows);
		this.numbers.set(name, made);
		return made;
	}

	/** A column as it is: texts, numbers, booleans, lists. */
	column(name: string): Column | null {
		return this.frame.column(name);
	}

	/** The type of a column in Arrow's words; empty when there is none. */
	type(name: string): string {
		return this.frame.fields.find((field) => field.name === name)?.type ?? "";
	}

	/** One value as text; null stays null. */
	text(name: string, row: number): string | null {
		const value: unknown = this.frame.column(name)?.get(row);
		return value === null || value === undefined ? null : String(value);
	}

	/** A column of texts. */
	texts(name: string): (string | null)[] {
		const known = this.words.get(name);
		if (known) return known;
		const column = this.frame.column(name);
		const made = new Array<string | null>(this.rows);
		for (let i = 0; i < this.rows; i += 1) {
			const value: unknown = column?.get(i);
			made[i] = value === null || value === undefined ? null : String(value);
		}
		this.words.set(name, made);
		return made;
	}

	/** A column of truth values; null is false. */
	flags(name: string): boolean[] {
		const column = this.frame.column(name);
		return Array.from({ length: this.rows }, (_, i) => column?.get(i) === true);
	}

	/** A column of texts of which few differ: an index per row (-1 for null) into the values. */
	codes(name: string): { codes: Int32Array; values: string[] } {
		const column = this.frame.column(name);
		const codes = new Int32Array(this.rows).fill(-1);
		const values: string[] = [];
		const known = new Map<string, number>();
		for (let i = 0; i < this.rows; i += 1) {
			const value: unknown = column?.get(i);
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
	lists(name: string): Lists {
		const known = this.listed.get(name);
		if (known) return known;
		const made = toLists(this.frame.column(name), this.rows);
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

function toLists(column: Column | null, rows: number): Lists {
	// Views into the answer, which is what the server sends.
	const known = column?.lists();
	if (known) return known;
	if (!column) return new Lists(new Float64Array(0), new Int32Array(rows + 1));
	const lists = Array.from({ length: rows }, (_, i) => {
		const list = column.get(i) as Iterable<unknown> | null | undefined;
		return list ? Array.from(list, (value) => (value === null ? Number.NaN : Number(value))) : [];
	});
	return Lists.of(lists);
}

function toNumbers(column: Column | null, rows: number): Float64Array {
	if (!column) return new Float64Array(rows).fill(Number.NaN);
	// A view into the answer, which is what the server sends.
	const known = column.floats();
	if (known) return known;
	const made = new Float64Array(rows);
	for (let i = 0; i < rows; i += 1) {
		const value = column.get(i);
		made[i] = value === null || value === undefined ? Number.NaN : Number(value);
	}
	return made;
}
