// What a reader means by a text typed into the filter field, given what the session has.

import type { Filter } from "../api/types";
import { mergeFilters, parseDuration, parseTyped, TENANTS, type TenantMember } from "./filters";

/** Something that the session has: a call, a name, a file. */
export interface Known {
	kind: string;
	label: string;
	filter: Filter;
}

export type Meaning<T extends Known> =
	/** It is a filter. */
	| { filter: Filter }
	/** It is part of a path, if any path has it: that is for the server to tell. */
	| { path: string; otherwise: T[] }
	/** It cannot be meant; perhaps one of `offers` is. */
	| { problem: string; offers: T[] };

const OFFERS = 3;

/** Null when nothing was typed. */
export function meaningOf<T extends Known>(text: string, known: readonly T[]): Meaning<T> | null {
	const typed = text.trim();
	if (typed === "" || typed === "!") return null;
	const bound = /^(?:dur\s*)?([<>]=?)\s*(.*)$/.exec(typed);
	if (bound && parseDuration(bound[2] ?? "") === null) return { problem: noDuration(bound[2] ?? ""), offers: [] };
	// `fsync > 10ms`: two conditions at once.
	const both = /^([^<>]+?)\s*([<>]=?)\s*([^<>]+)$/.exec(typed);
	if (both && !bound) {
		const [, name = "", sign = "", value = ""] = both;
		const first = meaningOf(name, known);
		const limit = parseDuration(value) === null ? null : parseTyped(`${sign}${value}`);
		if (first && "problem" in first) return first;
		if (first && "path" in first && first.otherwise.length > 0 && !someHave(name, known))
			return { problem: `Nothing here is called “${name}”`, offers: first.otherwise };
		if (limit === null) return { problem: noDuration(value), offers: [] };
		return { filter: mergeFilters(first && "filter" in first ? first.filter : { path: name }, limit) };
	}
	const filter = parseTyped(typed);
	if (filter === null) return null;
	const kind = /^!?([a-z]+)\s*[:=]/i.exec(typed)?.[1]?.toLowerCase();
	if (kind !== undefined) return named(filter, kind, typed, known);
	// A range of durations, errors.
	if (filter.path === undefined && filter.not_path === undefined) return { filter };
	const word = typed.replace(/^!/, "").trim().toLowerCase();
	const same = known.filter((k) => k.kind !== "file" && k.label.toLowerCase() === word);
	const first = same[0];
	if (first && filter.path !== undefined) return { filter: first.filter };
	return filter.path === undefined ? { filter } : { path: filter.path, otherwise: nearest(word, known) };
}

/** What may be meant by a text that is no filter, or that nothing matches. */
export function offersOf<T extends Known>(text: string, known: readonly T[]): readonly T[] {
	const meaning = meaningOf(text, known);
	if (meaning === null) return [];
	if ("problem" in meaning) return meaning.offers;
	if ("path" in meaning) return meaning.otherwise;
	// It was no name when it was typed.
	const name = text.trim().toLowerCase();
	return known.filter((k) => k.label.toLowerCase() === name).slice(0, OFFERS);
}

function someHave(text: string, known: readonly Known[]): boolean {
	const wanted = text.toLowerCase();
	return known.some((k) => k.kind === "file" && k.label.toLowerCase().includes(wanted));
}

function noDuration(text: string): string {
	return text.trim() === ""
		? "A duration is missing: write > 1ms"
		: `“${text.trim()}” is not a duration: write 50us, 1ms or 2.5s`;
}

/** `syscall:fsyncc`: a name that the session has not is a slip. */
function named<T extends Known>(filter: Filter, kind: string, typed: string, known: readonly T[]): Meaning<T> {
	const tenant = TENANTS.find((member) => filter[member] !== undefined);
	if (tenant) return ofTenant(filter, tenant, known);
	const values = filter.syscall ?? filter.class;
	const of = filter.syscall ? "syscall" : "class";
	const own = known.filter((k) => k.kind === of);
	const wrong = values?.find((value) => !own.some((k) => k.label === value));
	if (wrong !== undefined && own.length > 0)
		return {
			problem: `No ${of === "syscall" ? "call" : "class of calls"} “${wrong}” in this session`,
			offers: nearest(wrong, own),
		};
	// A kind that there is not, or a number that is none, is taken for part of a path.
	const path = kind === "path" ? undefined : filter.path;
	return path === undefined ? { filter } : { path, otherwise: nearest(typed, known) };
}

/** Tenants of a kind that the page knows at most. */
const MOST_TENANTS = 200;

/** Whether a tenant is meant by a value, in any of the forms that the server takes. */
function isMeant(member: TenantMember, value: string, known: Known): boolean {
	if (known.label === value || known.filter[member]?.[0] === value) return true;
	switch (member) {
		case "cgroup":
			return known.label.startsWith(`${value.replace(/\/+$/, "")}/`);
		case "unit":
			// The suggested units are the innermost ones.
			return known.label === `${value}.service` || `${known.label}/`.includes(`/${value}/`);
		case "container":
			return known.label.endsWith(`/${value}`) || (known.filter.container?.[0]?.startsWith(value) ?? false);
		default:
			return known.label.endsWith(`/${value}`);
	}
}

/** `unit:ngin`: a tenant that the session has not is a slip. */
function ofTenant<T extends Known>(filter: Filter, member: TenantMember, known: readonly T[]): Meaning<T> {
	const own = known.filter((k) => k.kind === member || (member === "unit" && k.kind === "cgroup"));
	// Of volumes some forms of their names are not known here.
	const all = own.length > 0 && own.filter((k) => k.kind === member).length < MOST_TENANTS && member !== "volume";
	const isKnown = (value: string) => value.includes("*") || own.some((k) => isMeant(member, value, k));
	const wrong = all ? filter[member]?.find((value) => !isKnown(value)) : undefined;
	if (wrong === undefined) return { filter };
	return {
		problem: `No ${member} “${wrong}” in this session`,
		offers: nearest(
			wrong,
			own.filter((k) => k.kind === member),
		),
	};
}

/** Names that differ from a word by a slip or two, those that differ least first. */
export function nearest<T extends Known>(word: string, known: readonly T[]): T[] {
	const wanted = word.toLowerCase();
	const most = Math.max(1, Math.floor(wanted.length / 3));
	const found = known.flatMap((k) => {
		if (k.kind === "file") return [];
		const label = k.label.toLowerCase();
		const away = label.includes(wanted) && wanted.length > 2 ? 0.5 : distance(wanted, label, most);
		return away <= most ? [{ k, away }] : [];
	});
	found.sort((a, b) => a.away - b.away);
	return found.slice(0, OFFERS).map(({ k }) => k);
}

/** Letters to add, take out, change or swap; more than `most` is not told apart. */
export function distance(a: string, b: string, most: number): number {
	if (Math.abs(a.length - b.length) > most) return most + 1;
	let before: number[] = [];
	let row = Array.from({ length: b.length + 1 }, (_, i) => i);
	for (let i = 1; i <= a.length; i += 1) {
		const next = [i];
		for (let j = 1; j <= b.length; j += 1) {
			const change = (row[j - 1] ?? 0) + Number(a[i - 1] !== b[j - 1]);
			let least = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, change);
			if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
				least = Math.min(least, (before[j - 2] ?? 0) + 1);
			next.push(least);
		}
		before = row;
		row = next;
	}
	return row[b.length] ?? 0;
}
