// Where the rows of a comparison lead: to the calls behind them, in the session that has them.

import type { Change, Comparison, DiffRow, TableName } from "../../api/compare";
import type { Filter } from "../../api/types";

export type Side = "before" | "after";

/** The filter of a row of table `processes`, whose name may stand for several of a side; null while they are not known. */
export type OfProcesses = (name: string, side: Side) => Filter | null;

export interface Lead {
	view: string;
	side: Side;
	filter: Filter;
	params: Readonly<Record<string, string>>;
}

/** The sessions of a comparison: of several a side, the first one is opened. */
export interface Sides {
	before: string;
	after: string;
}

/** The state of the page that a row leads to. */
export function placeOf({ view, side, filter, params }: Lead, sides: Sides) {
	return { session: sides[side], view, filter, params, window: { kind: "all" } as const, rid: null };
}

/** The names behind a pattern are not known; of a path, what is before the first number or random part is in all of them. */
function ofPath(path: string, exact: boolean): Filter {
	return exact ? { full_path: [path] } : { path: path.slice(0, path.search(/[#*]|$/)) };
}

/** Null for rows whose calls no filter selects. */
export function leadOf(
	table: string,
	row: Pick<DiffRow, "name" | "on" | "names" | "status">,
	processes: OfProcesses,
): Lead | null {
	const exact = row.names == null;
	const side = row.status === "gone" ? "before" : "after";
	const filter = (): Filter | null => {
		switch (table) {
			case "files":
				return ofPath(row.name, exact);
			case "syscalls":
				return { syscall: [row.name] };
			case "operations":
				return { syscall: [row.name], ...(row.on ? ofPath(row.on, exact) : {}) };
			case "classes":
				return { class: [row.name] };
			case "processes":
				return processes(row.name, side);
			case "layers":
				return row.on ? { layer: [row.on] } : null;
			case "errors":
				return { syscall: [row.name], ...(row.on ? { error: [row.on] } : {}) };
			case "devices":
				return {};
			default:
				return null;
		}
	};
	const found = filter();
	if (found === null) return null;
	const device = table === "devices" ? (row.on ?? null) : null;
	return {
		view: device === null ? "table" : "devices",
		side,
		filter: found,
		params: device === null ? { sort: "-dur_ns" } : { device },
	};
}

/** What a row is called in a change, as the server names it. */
function subjectOf(table: string, { name, on }: DiffRow): string {
	if (on == null) return name;
	if (table === "errors") return `${name} failing with ${on}`;
	return table === "layers" ? `layer ${on} (${name})` : `${name} on ${on}`;
}

/** Of a change the row that it is of. */
export function leadOfChange(
	{ tables }: Pick<Comparison, "tables">,
	change: Pick<Change, "table" | "subject">,
	processes: OfProcesses,
): Lead | null {
	const rows: readonly DiffRow[] | undefined = tables[change.table as TableName];
	const row = rows?.find((one) => subjectOf(change.table, one) === change.subject);
	return row ? leadOf(change.table, row, processes) : null;
}
