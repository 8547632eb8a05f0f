// The processes behind a name in a comparison: `worker-#` stands for all names with another number.

import type { Comparison } from "../../api/compare";
import type { Filter, ThreadRow } from "../../api/types";
import type { Side } from "./leads";

/** The name of the row of the recorded command, if it is called differently on the two sides (crates/diff/src/matching.rs). */
const COMMAND = "(the command)";
/** Bytes of a name that the kernel keeps. */
const COMM_BYTES = 15;
/** More processes make the address too long: those with most time are shown. */
const MOST = 500;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The kernel's name of a command. */
function commOf(command: readonly string[]): string {
	const name = encoder.encode(command[0]?.split("/").at(-1) ?? "");
	return decoder.decode(name.slice(0, COMM_BYTES), { stream: true });
}

/** A pattern as the comparison writes it: `#` for a number, `*` for a random part. */
function patternOf(name: string): RegExp {
	const parts = name.split(/([#*])/).map((part) => {
		if (part === "#") return "\\d+";
		return part === "*" ? "[\\w-]+" : part.replace(/[\\^$.|?+(){}[\]]/g, "\\$&");
	});
	return new RegExp(`^${parts.join("")}$`, "u");
}

/** For the name of a process the name of its row; null without one. */
function finder(rows: readonly string[], command: string): (comm: string) => string | null {
	const names = new Set(rows);
	// A number is more particular than anything at random.
	const isRandom = (name: string) => Number(name.includes("*"));
	const patterns = rows
		.filter((name) => /[#*]/.test(name))
		.sort((a, b) => isRandom(a) - isRandom(b))
		.map((name) => ({ name, pattern: patternOf(name) }));
	return (comm) => {
		if (comm === command && names.has(COMMAND)) return COMMAND;
		if (names.has(comm)) return comm;
		return patterns.find(({ pattern }) => pattern.test(comm))?.name ?? null;
	};
}

/** Filters for the calls of all processes in a row of table `processes`, by the row's name; none for a row without any. */
export function filtersOfProcesses(
	{ tables, ...comparison }: Pick<Comparison, "tables" | Side>,
	side: Side,
	threads: readonly ThreadRow[],
): ReadonlyMap<string, Filter> {
	const rows = tables.processes.map((row) => row.name);
	const rowOf = finder(rows, commOf(comparison[side].sessions[0]?.command ?? []));
	const rowOfComm = new Map<string, string | null>();
	const found = (comm: string | null) => {
		if (comm === null) return null;
		let row = rowOfComm.get(comm);
		if (row === undefined) {
			row = rowOf(comm);
			rowOfComm.set(comm, row);
		}
		return row;
	};
	interface Group {
		names: Set<string>;
		pids: Set<number>;
		/** All threads with these names are of these processes, and the other way round. */
		isNamed: boolean;
	}
	const groups = new Map<string, Group>();
	for (const { process, pid } of threads) {
		const row = found(process);
		if (row === null || process === null || pid === null) continue;
		const group = groups.get(row) ?? { names: new Set(), pids: new Set(), isNamed: true };
		group.names.add(process);
		group.pids.add(pid);
		groups.set(row, group);
	}
	for (const { process, comm } of threads) {
		const of = groups.get(found(process) ?? "");
		if (of && (comm === null || !of.names.has(comm))) of.isNamed = false;
		const called = groups.get(found(comm) ?? "");
		if (called && called !== of && comm !== null && called.names.has(comm)) called.isNamed = false;
	}
	// The filter knows names of threads. Where they are called like their processes, names say more than numbers.
	const filterOf = ({ names, pids, isNamed }: Group): Filter =>
		isNamed ? { comm: [...names].sort().slice(0, MOST) } : { pid: [...pids].slice(0, MOST) };
	return new Map([...groups].map(([row, group]) => [row, filterOf(group)]));
}
