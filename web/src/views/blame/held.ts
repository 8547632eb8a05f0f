// Who held whom up: the rows of the SQL view `blame`, by thread or by process, and as a matrix.

import type { Columns } from "../../api/arrow";
import type { Filter } from "../../api/types";
import { visible } from "../../lib/format";

export type By = "process" | "thread";

/** A process or a thread. */
export interface Party {
	/** Null when it is not known. */
	id: number | null;
	name: string | null;
	/** Whether `processes` has it, so that its calls can be shown. */
	known: boolean;
}

/** How long a victim waited for a resource because of a culprit. */
export interface Held {
	resource: string;
	kind: string;
	victim: Party;
	/** Null when no request was ahead, or when it is not known. */
	culprit: Party | null;
	time: number;
	/** Of all the victim's waits for this resource. */
	share: number;
}

export type Sort = "resource" | "victim" | "culprit" | "time" | "share";

export function heldOf(answer: Columns): Held[] {
	const [resources, kinds] = [answer.texts("resource"), answer.texts("kind")];
	const [time, share, has] = [answer.f64("time_ns"), answer.f64("share"), answer.flags("has_culprit")];
	const party = (of: "victim" | "culprit") => {
		const [ids, names, known] = [answer.f64(`${of}_id`), answer.texts(of), answer.flags(`${of}_known`)];
		return (i: number): Party => {
			const id = ids[i] ?? Number.NaN;
			return { id: Number.isNaN(id) ? null : id, name: names[i] || null, known: known[i] === true };
		};
	};
	const [victim, culprit] = [party("victim"), party("culprit")];
	return resources.map((resource, i) => ({
		resource: resource ?? "",
		kind: kinds[i] ?? "",
		victim: victim(i),
		culprit: has[i] ? culprit(i) : null,
		time: time[i] ?? Number.NaN,
		share: share[i] ?? Number.NaN,
	}));
}

/** Without an id and a name it is a thread that was not recorded. */
export function partyName(party: Party): string {
	if (party.id === null) return party.name === null ? "not recorded" : visible(party.name);
	return `${party.name === null ? "?" : visible(party.name)} ${party.id}`;
}

/** A culprit that is null is none, or not known: SQL cannot tell which. */
export function culpritName(held: Held): string {
	if (held.culprit !== null) return partyName(held.culprit);
	return held.kind === "device" ? "none, or not known" : "not known";
}

/** The process or thread itself: its own requests were ahead, or its own timer woke it. */
export function isItself({ victim, culprit }: Held): boolean {
	return culprit !== null && culprit.id !== null && culprit.id === victim.id;
}

/** Whether nothing holds the victim up: it waits for work, or until its own timer ends. */
export function isIdle(held: Held): boolean {
	return held.resource === "poll" || (held.resource === "timer" && (held.culprit === null || isItself(held)));
}

/** Whether a party passes the members of a filter that are about processes, or threads, and names. */
function passes({ id, name }: Party, by: By, filter: Filter): boolean {
	const [ids, not] = by === "process" ? [filter.pid, filter.not_pid] : [filter.tid, filter.not_tid];
	if (ids && (id === null || !ids.includes(id))) return false;
	if (not && id !== null && not.includes(id)) return false;
	if (filter.comm && (name === null || !filter.comm.includes(name))) return false;
	return !(filter.not_comm && name !== null && filter.not_comm.includes(name));
}

/** Rows in which the victim or the culprit passes the filter. */
export function filtered(rows: readonly Held[], by: By, filter: Filter): Held[] {
	return rows.filter(
		({ victim, culprit }) => passes(victim, by, filter) || (culprit !== null && passes(culprit, by, filter)),
	);
}

/** Resources with their time, most first. */
export function resourcesOf(rows: readonly Held[]): { resource: string; time: number }[] {
	const sums = new Map<string, number>();
	for (const row of rows) sums.set(row.resource, (sums.get(row.resource) ?? 0) + row.time);
	return [...sums].map(([resource, time]) => ({ resource, time })).sort((a, b) => b.time - a.time);
}

/** Numbers: most first; names in their order. Rows that are equal keep theirs. */
export function sorted(rows: readonly Held[], sort: Sort): Held[] {
	const text = (row: Held) =>
		sort === "resource" ? row.resource : sort === "victim" ? partyName(row.victim) : culpritName(row);
	const compare = (a: Held, b: Held) =>
		sort === "time" || sort === "share" ? b[sort] - a[sort] : text(a).localeCompare(text(b));
	return [...rows].sort(compare);
}

export interface Matrix {
	victims: string[];
	culprits: string[];
	/** Time by victim, then culprit. */
	cells: number[][];
	most: number;
	/** Time that has no cell. */
	rest: number;
}

/** The victims and culprits with the most time, each against each. */
export function matrixOf(rows: readonly Held[], most: number): Matrix {
	const victims = leading(rows, (row) => partyName(row.victim), most);
	const culprits = leading(rows, culpritName, most);
	const cells = victims.map(() => culprits.map(() => 0));
	let rest = 0;
	for (const row of rows) {
		const line = cells[victims.indexOf(partyName(row.victim))];
		const at = culprits.indexOf(culpritName(row));
		if (line && at >= 0) line[at] = (line[at] ?? 0) + row.time;
		else rest += row.time;
	}
	return { victims, culprits, cells, most: Math.max(0, ...cells.flat()), rest };
}

function leading(rows: readonly Held[], name: (row: Held) => string, most: number): string[] {
	const sums = new Map<string, number>();
	for (const row of rows) sums.set(name(row), (sums.get(name(row)) ?? 0) + row.time);
	const order = [...sums].sort((a, b) => b[1] - a[1]);
	return order.slice(0, most).map(([key]) => key);
}
