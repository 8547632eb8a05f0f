// The columns of the event table: how they are called, how wide they are, how their values are shown.

import { bytes, duration, exact, exactTime } from "../../lib/format";

export interface TableColumn {
	/** Its name in table syscalls. */
	id: string;
	title: string;
	width: number;
	number: boolean;
	/** What a value is shown as; the exact one stands in the tooltip and is copied. */
	show?: (value: number) => string;
	/** The longest are cut at their beginning. */
	path?: boolean;
}

export const COLUMNS: readonly TableColumn[] = [
	{ id: "ts_ns", title: "Start", width: 152, number: true, show: exactTime },
	{ id: "dur_ns", title: "Duration", width: 84, number: true, show: duration },
	{ id: "comm", title: "Thread name", width: 130, number: false },
	{ id: "pid", title: "Process", width: 74, number: true },
	{ id: "tid", title: "Thread", width: 74, number: true },
	{ id: "cpu", title: "CPU", width: 52, number: true },
	{ id: "syscall", title: "Syscall", width: 124, number: false },
	{ id: "class", title: "Class", width: 84, number: false },
	{ id: "errno", title: "Error", width: 90, number: false },
	{ id: "path", title: "Path", width: 220, number: false, path: true },
	{ id: "ret", title: "Result", width: 90, number: true, show: exact },
	{ id: "fd", title: "FD", width: 54, number: true },
	{ id: "file_id", title: "File", width: 64, number: true },
	{ id: "file_offset", title: "Offset", width: 120, number: true, show: exact },
	{ id: "size", title: "Requested", width: 84, number: true, show: bytes },
	{ id: "bytes", title: "Bytes", width: 84, number: true, show: bytes },
	{ id: "path2", title: "Second path", width: 240, number: false, path: true },
	{ id: "path_arg", title: "Path as passed", width: 240, number: false, path: true },
	{ id: "flags", title: "Flags", width: 180, number: false },
	{ id: "args", title: "Arguments", width: 260, number: false },
	{ id: "api", title: "Interface", width: 80, number: false },
	{ id: "op_flags", title: "Operation flags", width: 140, number: false },
	{ id: "rid", title: "Request", width: 90, number: true },
];

export const STANDARD = ["ts_ns", "dur_ns", "comm", "tid", "syscall", "errno", "path", "file_offset", "bytes", "flags"];

/** The columns of an address, in the order of the table; the standard ones when it names none. */
export function chosenColumns(param: string): TableColumn[] {
	const wanted = param === "" ? STANDARD : param.split(",");
	const found = COLUMNS.filter((column) => wanted.includes(column.id));
	return found.length > 0 ? found : COLUMNS.filter((column) => STANDARD.includes(column.id));
}

/** A path that is cut at the edge of the grid has lost its end: one that is half in sight is made to fit, unless it becomes too narrow. */
const LEAST_PATH = 140;

/** Widths of columns in a grid so many pixels wide. Paths give way to a last column that would be cut. */
export function widthsOf(columns: readonly TableColumn[], room: number): number[] {
	const over = columns.reduce((all, column) => all + column.width, 0) - room;
	const paths = columns.filter((column) => column.path);
	const spare = paths.reduce((all, column) => all + column.width - LEAST_PATH, 0);
	if (over > 0 && over <= spare) {
		return columns.map((column) =>
			column.path ? column.width - Math.ceil((over * (column.width - LEAST_PATH)) / spare) : column.width,
		);
	}
	let left = 0;
	return columns.map((column) => {
		const fits = room - left;
		const width = column.path && fits >= LEAST_PATH && fits < column.width ? fits : column.width;
		left += width;
		return width;
	});
}

/** The order that a click on a head asks for: the largest first, then the smallest, then by time. */
export function nextSort(sort: string, id: string): string {
	if (id === "ts_ns") return sort === "ts_ns" ? "-ts_ns" : "ts_ns";
	if (sort === `-${id}`) return id;
	return sort === id ? "ts_ns" : `-${id}`;
}

/** A cell as text for the clipboard: what would break a line of tab-separated values stands as an escape. */
export function cell(value: unknown): string {
	if (value === null || value === undefined) return "";
	return String(value).replaceAll("\\", "\\\\").replaceAll("\t", "\\t").replaceAll("\n", "\\n").replaceAll("\r", "\\r");
}

/** Sums of selected rows. */
export interface Sums {
	rows: number;
	/** Rows of which the values are there: others were scrolled out of memory. */
	known: number;
	time: number;
	longest: number;
	bytes: number;
	errors: number;
}

/** Sums of rows, in words. */
export function sumsText(sums: Sums): string {
	const parts = [`${exact(sums.rows)} selected`];
	if (sums.known > 0) {
		parts.push(`${duration(sums.time)} in calls`, `mean ${duration(sums.time / sums.known)}`);
		parts.push(`longest ${duration(sums.longest)}`, bytes(sums.bytes));
		if (sums.errors > 0) parts.push(`${exact(sums.errors)} ${sums.errors === 1 ? "error" : "errors"}`);
	}
	if (sums.known < sums.rows) parts.push(`of ${exact(sums.known)} loaded rows`);
	return parts.join(" · ");
}
