// The filter in words: what a reader types, and what stands on a chip.

import type { Filter } from "../api/types";
import { duration } from "./format";

/** Members that are names of tenants, in which `*` stands for anything. */
export const TENANTS = ["cgroup", "unit", "pod", "namespace", "container", "volume"] as const;

export type TenantMember = (typeof TENANTS)[number];

/** Members of the filter that are lists of names or numbers. */
export type ListMember = "pid" | "tid" | "comm" | "syscall" | "class" | "file" | "full_path" | "layer" | TenantMember;

export const LISTS: readonly ListMember[] = [
	"syscall",
	"class",
	"comm",
	"pid",
	"tid",
	"file",
	"full_path",
	"layer",
	...TENANTS,
];

export function isTenant(member: string): member is TenantMember {
	return (TENANTS as readonly string[]).includes(member);
}

/** How members are called on the page. */
export const MEMBER_NAMES: Readonly<Record<ListMember, string>> = {
	syscall: "syscall",
	class: "class",
	comm: "thread name",
	pid: "process",
	tid: "thread",
	file: "file",
	full_path: "path",
	layer: "layer",
	cgroup: "cgroup",
	unit: "unit",
	pod: "pod",
	namespace: "namespace",
	container: "container",
	volume: "volume",
};

const NUMERIC: ReadonlySet<ListMember> = new Set<ListMember>(["pid", "tid", "file"]);

export function isNumeric(member: ListMember): boolean {
	return NUMERIC.has(member);
}

const UNITS: Readonly<Record<string, number>> = { ns: 1, us: 1e3, µs: 1e3, μs: 1e3, ms: 1e6, s: 1e9, m: 60e9 };

/** Nanoseconds of `1.5ms`; null when it is no duration. A number alone is in milliseconds, as people speak of latency. */
export function parseDuration(text: string): number | null {
	const found = /^(\d+(?:\.\d+)?)\s*(ns|us|µs|μs|ms|s|m)?$/.exec(text.trim());
	if (!found) return null;
	return Math.round(Number(found[1]) * (UNITS[found[2] ?? "ms"] ?? 1e6));
}

const ALIASES: Readonly<Record<string, ListMember>> = {
	call: "syscall",
	syscall: "syscall",
	class: "class",
	comm: "comm",
	name: "comm",
	pid: "pid",
	process: "pid",
	tid: "tid",
	thread: "tid",
	file: "file",
	layer: "layer",
	...(Object.fromEntries(TENANTS.map((member) => [member, member])) as Record<TenantMember, TenantMember>),
	claim: "volume",
};

/**
 * What a typed text asks for: `syscall:read`, `!comm:redis`, `path:/var`, `>1ms`, `<50us`, `1ms..10ms`, `error`, `ok`, `ENOENT`.
 * Anything else is part of a path. Null when nothing was typed.
 */
export function parseTyped(text: string): Filter | null {
	const typed = text.trim();
	if (typed === "") return null;
	const not = typed.startsWith("!");
	const body = not ? typed.slice(1).trim() : typed;
	const range = /^(?:dur\s*)?(\d[\d.]*?\s*[a-zµμ]*)\s*\.\.\s*(\d[\d.]*\s*[a-zµμ]*)$/.exec(body);
	const ends = [range?.[1], range?.[2]].map((end) => (end === undefined ? null : parseDuration(end)));
	if (typeof ends[0] === "number" && typeof ends[1] === "number" && ends[0] <= ends[1])
		return { dur: [ends[0], ends[1]] };
	const longer = /^(?:dur\s*)?>=?\s*(.+)$/.exec(body);
	const shorter = /^(?:dur\s*)?<=?\s*(.+)$/.exec(body);
	const low = longer?.[1] === undefined ? null : parseDuration(longer[1]);
	const high = shorter?.[1] === undefined ? null : parseDuration(shorter[1]);
	if (low !== null) return { dur: [low, null] };
	if (high !== null) return { dur: [null, high] };
	if (/^errors?$/i.test(body)) return { error: not ? "none" : "any" };
	if (/^ok$/i.test(body)) return { error: not ? "any" : "none" };
	if (/^E[A-Z0-9]{2,}$/.test(body)) return not ? { not_error: [body] } : { error: [body] };
	const named = /^([a-z]+)\s*[:=]\s*(.+)$/i.exec(body);
	const name = named?.[1]?.toLowerCase() ?? "";
	const value = named?.[2]?.trim() ?? "";
	if (name === "path") return not ? { not_path: value } : { path: value };
	if (name === "error" || name === "errno") return not ? { not_error: [value] } : { error: [value] };
	const member = ALIASES[name];
	if (member !== undefined && value !== "") {
		const values = value
			.split(",")
			.map((v) => v.trim())
			.filter((v) => v !== "");
		if (isNumeric(member)) {
			const numbers = values.map(Number).filter((n) => Number.isInteger(n) && n >= 0);
			if (numbers.length > 0) return { [not ? `not_${member}` : member]: numbers };
		} else if (values.length > 0) return { [not ? `not_${member}` : member]: values };
	}
	return body === "" ? null : not ? { not_path: body } : { path: body };
}

/** Two filters as one: lists are joined, bounds and paths are those of the second where it has them. */
export function mergeFilters(a: Filter, b: Filter): Filter {
	const next: Record<string, unknown> = { ...a };
	for (const [name, value] of Object.entries(b)) {
		const before = next[name];
		if (name === "dur" && Array.isArray(before) && Array.isArray(value)) {
			next[name] = [value[0] ?? before[0], value[1] ?? before[1]];
		} else if (Array.isArray(value) && Array.isArray(before)) {
			next[name] = [...before, ...value.filter((v) => !before.includes(v))];
		} else next[name] = value;
	}
	return next as Filter;
}

/**
 * The calls of a filter that have a directory in a path. A filter holds one such text: null if its own is not part of the new
 * one, because calls that it leaves out would be back. Null for `/`, which all paths contain.
 */
export function withPath(filter: Filter, directory: string): Filter | null {
	const narrows = filter.path === undefined || directory.includes(filter.path);
	return narrows && directory !== "/" ? { ...filter, path: directory } : null;
}

/**
 * The calls of a filter that have a directory in no path. Null if the text that the filter leaves out does not contain the new
 * one, because calls that it leaves out would be back, and if no call with a path would remain.
 */
export function withoutPath(filter: Filter, directory: string): Filter | null {
	const narrows = filter.not_path === undefined || filter.not_path.includes(directory);
	const remain = directory !== "/" && !filter.path?.includes(directory);
	return narrows && remain ? { ...filter, not_path: directory } : null;
}

export interface Chip {
	member: keyof Filter;
	name: string;
	not: boolean;
	values: (string | number)[];
}

/** What stands on the chips of a filter. */
export function chipsOf(filter: Filter): Chip[] {
	const chips: Chip[] = [];
	for (const member of LISTS) {
		for (const not of [false, true]) {
			const name = not ? (`not_${member}` as const) : member;
			const values = filter[name];
			if (values) chips.push({ member: name, name: MEMBER_NAMES[member], not, values });
		}
	}
	if (filter.path !== undefined) chips.push({ member: "path", name: "path has", not: false, values: [filter.path] });
	if (filter.not_path !== undefined)
		chips.push({ member: "not_path", name: "path has", not: true, values: [filter.not_path] });
	for (const member of ["error", "not_error"] as const) {
		const error = filter[member];
		if (error === undefined) continue;
		chips.push({ member, name: "error", not: member === "not_error", values: Array.isArray(error) ? error : [error] });
	}
	if (filter.dur) {
		const [low, high] = filter.dur;
		const text =
			low !== null && high !== null
				? `${duration(low)} to ${duration(high)}`
				: low !== null
					? `from ${duration(low)}`
					: `up to ${duration(high ?? 0)}`;
		chips.push({ member: "dur", name: "duration", not: false, values: [text] });
	}
	return chips;
}

export function withoutMember(filter: Filter, member: keyof Filter): Filter {
	const next = { ...filter };
	delete next[member];
	return next;
}
