// Cells of a result: as texts, in an order, for the clipboard and for a file.

import type { Columns } from "../../api/arrow";
import { saveBlob } from "../save";
import { isNumeric } from "./plot";

export type CellColumns = Pick<Columns, "rows" | "names" | "f64" | "text" | "type" | "column">;

/** A value as a text; null stays null. Numbers have all their digits. */
export function cellText(data: CellColumns, name: string, row: number): string | null {
	if (isNumeric(data, name)) {
		const value = data.f64(name)[row] ?? Number.NaN;
		return Number.isNaN(value) ? null : String(value);
	}
	const value: unknown = data.column(name)?.get(row);
	if (value === null || value === undefined) return null;
	if (typeof value === "object" && Symbol.iterator in value) return `[${[...(value as Iterable<unknown>)].join(", ")}]`;
	return String(value);
}

/** The rows in an order: nulls last, equal ones as they came. */
export function sortedRows(data: CellColumns, sort: { name: string; down: boolean } | null): Uint32Array {
	const order = Uint32Array.from({ length: data.rows }, (_, i) => i);
	if (!sort) return order;
	const sign = sort.down ? -1 : 1;
	if (isNumeric(data, sort.name)) {
		const values = data.f64(sort.name);
		return order.sort((a, b) => {
			const x = values[a] ?? Number.NaN;
			const y = values[b] ?? Number.NaN;
			if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y)) || a - b;
			return sign * (x - y) || a - b;
		});
	}
	const texts = Array.from(order, (row) => cellText(data, sort.name, row));
	return order.sort((a, b) => {
		const x = texts[a] ?? null;
		const y = texts[b] ?? null;
		if (x === null || y === null) return Number(x === null) - Number(y === null) || a - b;
		return sign * (x < y ? -1 : x > y ? 1 : 0) || a - b;
	});
}

const SAMPLE = 200;
const CHARACTER = 7.3;
const PADDING = 20;

/** Widths of columns, by the first rows and the names. */
export function widths(data: CellColumns): number[] {
	return data.names.map((name) => {
		let longest = name.length + 2;
		for (let row = 0; row < Math.min(data.rows, SAMPLE); row += 1) {
			longest = Math.max(longest, cellText(data, name, row)?.length ?? 4);
		}
		return Math.round(Math.min(460, Math.max(64, longest * CHARACTER + PADDING)));
	});
}

/**
 * Spreadsheets run what begins like a formula: names of traced programs must not become one. The same rule as in
 * `fathom query --format csv`; the wide forms count for spreadsheets in East Asian languages.
 */
function harmless(text: string): string {
	const number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
	return /^[=+\-@＝＋－＠\t\r]/.test(text) && !number.test(text) ? `'${text}` : text;
}

/** Rows as text for the clipboard: a tab between cells, none within one. */
export function tsv(data: CellColumns, rows: Iterable<number>): string {
	const clean = (text: string) => harmless(text).replace(/[\t\r\n]/g, " ");
	const lines = [data.names.map(clean).join("\t")];
	for (const row of rows) lines.push(data.names.map((name) => clean(cellText(data, name, row) ?? "")).join("\t"));
	return `${lines.join("\n")}\n`;
}

/** All rows as a file for other programs, as RFC 4180 has it. */
export function csv(data: CellColumns): string {
	const quoted = (text: string) => {
		const safe = harmless(text);
		return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
	};
	const lines = [data.names.map(quoted).join(",")];
	for (let row = 0; row < data.rows; row += 1) {
		lines.push(data.names.map((name) => quoted(cellText(data, name, row) ?? "")).join(","));
	}
	return `${lines.join("\r\n")}\r\n`;
}

/** Offers a text as a file for download. */
export function saveText(text: string, name: string, type: string): void {
	saveBlob(new Blob([text], { type }), name);
}
