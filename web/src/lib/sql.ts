// SQL as the page handles it: its words for coloring, placeholders for what the page shows, and where an error is.

import type { Filter } from "../api/types";
import { TENANTS } from "./filters";
import { literal } from "./quote";
import type { Span } from "./scale";
import { tenantCondition } from "./tenants";

export type TokenKind = "keyword" | "name" | "text" | "number" | "comment" | "placeholder" | "other";

export interface Token {
	kind: TokenKind;
	from: number;
	to: number;
}

const KEYWORDS = new Set(
	(
		"all and any as asc asof between by case cast cross cube current day desc describe distinct else end except exclude " +
		"exists explain false filter first following from full group grouping having hour ignore in inner intersect interval " +
		"into is join last lateral left like ilike limit minute month natural not null nulls offset on or order outer over " +
		"partition pivot positional preceding qualify range recursive replace respect right rollup row rows sample second " +
		"select semi anti sets similar show summarize table tables tablesample then ties to true unbounded union unnest " +
		"unpivot using values when where window with within year"
	).split(" "),
);

const PATTERN =
	/(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*(?:'|$))|("(?:[^"]|"")*(?:"|$))|(\$[A-Za-z_]+)|((?:\d[\d_]*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|([A-Za-z_][A-Za-z0-9_]*)|(\s+|[\s\S])/g;

/** The text in pieces, from its beginning to its end without gaps. */
export function tokens(sql: string): Token[] {
	const found: Token[] = [];
	for (const match of sql.matchAll(PATTERN)) {
		const from = match.index;
		const to = from + match[0].length;
		const kind: TokenKind = match[1]
			? "comment"
			: match[2]
				? "text"
				: match[3]
					? "name"
					: match[4]
						? "placeholder"
						: match[5]
							? "number"
							: match[6]
								? KEYWORDS.has(match[6].toLowerCase())
									? "keyword"
									: "name"
								: "other";
		const last = found.at(-1);
		if (kind === "other" && last?.kind === "other") last.to = to;
		else found.push({ kind, from, to });
	}
	return found;
}

/** A name as SQL has it. */
export function identifier(name: string): string {
	return /^[a-z_][a-z0-9_]*$/.test(name) && !KEYWORDS.has(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** The page's filter as a condition on rows of table syscalls. */
export function condition(filter: Filter): string {
	const parts: string[] = [];
	const list = (column: string, values: readonly (string | number)[] | undefined, not: boolean) => {
		if (!values) return;
		const all = values.map((v) => (typeof v === "number" ? String(v) : literal(v))).join(", ");
		parts.push(not ? `(${column} IS NULL OR ${column} NOT IN (${all}))` : `${column} IN (${all})`);
	};
	const layers = (values: readonly string[] | undefined, not: boolean) => {
		if (!values) return;
		const all = values.map(literal).join(", ");
		parts.push(`rid ${not ? "NOT " : ""}IN (SELECT rid FROM slices WHERE layer IN (${all}))`);
	};
	for (const not of [false, true]) {
		list("pid", not ? filter.not_pid : filter.pid, not);
		list("tid", not ? filter.not_tid : filter.tid, not);
		list("comm", not ? filter.not_comm : filter.comm, not);
		list("syscall", not ? filter.not_syscall : filter.syscall, not);
		list("class", not ? filter.not_class : filter.class, not);
		list("file_id", not ? filter.not_file : filter.file, not);
		list("path", not ? filter.not_full_path : filter.full_path, not);
		for (const member of TENANTS) {
			const values = not ? filter[`not_${member}`] : filter[member];
			if (values) parts.push(tenantCondition(member, values, not));
		}
		const path = not ? filter.not_path : filter.path;
		if (path !== undefined) {
			// As the server has it: a call with two paths passes by either.
			const has = (column: string) => `coalesce(contains(${column}, ${literal(path)}), false)`;
			const either = `(${has("path")} OR ${has("path2")})`;
			parts.push(not ? `NOT ${either}` : either);
		}
		layers(not ? filter.not_layer : filter.layer, not);
		const error = not ? filter.not_error : filter.error;
		if (Array.isArray(error)) list("errno", error, not);
		else if (error !== undefined) parts.push(error === "any" ? "errno IS NOT NULL" : "errno IS NULL");
	}
	const [low, high] = filter.dur ?? [null, null];
	if (low !== null) parts.push(`dur_ns >= ${Math.ceil(low)}`);
	if (high !== null) parts.push(`dur_ns <= ${Math.floor(high)}`);
	return parts.length === 0 ? "true" : `(${parts.join(" AND ")})`;
}

/** What placeholders stand for. */
export interface Shown {
	/** Begin of the session on the clock of its tables. */
	start: number;
	span: Span;
	filter: Filter;
	/** About so many buckets are wanted. */
	buckets: number;
}

export interface Expanded {
	text: string;
	/** The statement has placeholders of the window or the filter: it is to be asked again when they change. */
	follows: boolean;
	/** It has those of the window, and that of the filter: what it lacks does not apply to it. */
	windowed: boolean;
	filtered: boolean;
	/** Placeholders that mean nothing. */
	unknown: string[];
	/** The place in the source of a place in the text. */
	back: (place: number) => number;
}

export const PLACEHOLDERS: readonly (readonly [name: string, meaning: string])[] = [
	["$from", "begin of the page's window, as ts_ns"],
	["$to", "end of the page's window, as ts_ns"],
	["$start", "begin of the session, as ts_ns"],
	["$bucket", "width of a bucket, nanoseconds: about 300 to the window"],
	["$filter", "the page's filter, as a condition on table syscalls"],
];

export function expand(sql: string, shown: Shown): Expanded {
	const from = shown.start + Math.floor(shown.span.from);
	const to = shown.start + Math.ceil(shown.span.to);
	const values: Readonly<Record<string, string>> = {
		$from: from.toFixed(0),
		$to: to.toFixed(0),
		$start: shown.start.toFixed(0),
		$bucket: Math.max(1, Math.round((to - from) / shown.buckets)).toFixed(0),
		$filter: condition(shown.filter),
	};
	let text = "";
	const used = new Set<string>();
	const unknown: string[] = [];
	const pieces: { at: number; length: number; source: number; same: boolean }[] = [];
	for (const token of tokens(sql)) {
		const source = sql.slice(token.from, token.to);
		const value = token.kind === "placeholder" ? values[source.toLowerCase()] : undefined;
		if (token.kind === "placeholder" && value === undefined) unknown.push(source);
		if (value !== undefined) used.add(source.toLowerCase());
		const put = value ?? source;
		pieces.push({ at: text.length, length: put.length, source: token.from, same: value === undefined });
		text += put;
	}
	const back = (place: number): number => {
		for (const piece of pieces) {
			if (place < piece.at + piece.length) return piece.same ? piece.source + (place - piece.at) : piece.source;
		}
		return sql.length;
	};
	const filtered = used.has("$filter");
	const windowed = used.has("$from") || used.has("$to");
	return { text, follows: filtered || windowed || used.has("$bucket"), windowed, filtered, unknown, back };
}

/** What of the page's window and filter a statement leaves aside; empty when it heeds what there is. */
export function unheeded(expanded: Pick<Expanded, "windowed" | "filtered">, whole: boolean, filter: Filter): string {
	const window = !whole && !expanded.windowed ? "the window ($from, $to)" : "";
	const rest = Object.keys(filter).length > 0 && !expanded.filtered ? "the filter ($filter)" : "";
	const what = [window, rest].filter((part) => part !== "").join(" and ");
	return what === "" ? "" : `does not heed ${what}`;
}

/** What the database says, without the excerpt of the statement, and where in the statement it means; -1 for nowhere. */
export interface SqlError {
	message: string;
	at: number;
	length: number;
}

/** Words of SQL that are likely meant as names, and what columns of fathom's tables are called instead. */
const MISTAKEN: Readonly<Record<string, string>> = { offset: "file_offset", end: "ended_at_ns", when: "ts_ns" };

/** A word of SQL where a name should be: the parser complains only about what follows it. */
function reserved(statement: string, place: number): { word: string; from: number; to: number } | null {
	const all = tokens(statement).filter((t) => t.kind !== "comment" && statement.slice(t.from, t.to).trim() !== "");
	const at = all.findIndex((t) => place >= t.from && place < t.to);
	// The word itself, or the one before what the parser could not take.
	for (const token of [all[at], all[at - 1]]) {
		if (token?.kind !== "keyword") continue;
		const before = all[all.indexOf(token) - 1];
		const word = statement.slice(token.from, token.to);
		const lead = before ? statement.slice(before.from, before.to).trim().toLowerCase() : "";
		// Behind these a name or an expression is to come.
		const expected = /[,(=<>+*/-]$/.test(lead) || ["select", "by", "and", "or", "where", "distinct"].includes(lead);
		if (expected && !EXPRESSIONS.has(word.toLowerCase())) return { word, from: token.from, to: token.to };
	}
	return null;
}

function occurrences(text: string, part: string): number[] {
	const found: number[] = [];
	for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) found.push(at);
	return found;
}

/** Words of SQL that an expression may begin with. */
const EXPRESSIONS = new Set(
	"not null true false case cast exists interval distinct any all row unnest select from left right".split(" "),
);

export function errorIn(text: string, statement: string): SqlError {
	const found = locate(text, statement);
	if (found.at < 0 || !/syntax error/i.test(text)) return found;
	// Without the line the parser's sign may be any of its kind.
	const sign = /\nLINE \d/.test(text) ? undefined : /at or near "([^"]+)"/.exec(text)?.[1];
	const places = sign === undefined ? [found.at] : occurrences(statement, sign);
	const slip = places.map((place) => reserved(statement, place)).find((word) => word !== null);
	if (!slip) return found;
	const column = MISTAKEN[slip.word.toLowerCase()];
	const instead = column
		? `the column is called ${column}`
		: `write "${slip.word}" in double quotes to use it as a name`;
	return {
		message: `${slip.word} is a keyword of SQL: ${instead}`,
		at: slip.from,
		length: slip.to - slip.from,
	};
}

function locate(text: string, statement: string): SqlError {
	const found = /\n*LINE (\d+): ([^\n]*)\n([ ]*)\^[^\n]*/.exec(text);
	const message = (found ? text.slice(0, found.index) + text.slice(found.index + found[0].length) : text).trim();
	const place = found ? placeOf(found, statement) : quoted(text, statement);
	if (place < 0) return { message, at: -1, length: 0 };
	const token = tokens(statement).find((t) => place >= t.from && place < t.to && t.kind !== "other");
	return token ? { message, at: token.from, length: token.to - token.from } : { message, at: place, length: 1 };
}

function placeOf(found: RegExpExecArray, statement: string): number {
	const line = Number(found[1]);
	const excerpt = found[2] ?? "";
	const caret = (found[3] ?? "").length - `LINE ${line}: `.length;
	const lines = statement.split("\n");
	const source = lines[line - 1];
	if (source === undefined || caret < 0) return -1;
	const before = lines.slice(0, line - 1).reduce((sum, l) => sum + l.length + 1, 0);
	// Of long lines the database shows a part, with dots for the rest.
	const shown = excerpt.replace(/^\.\.\./, "").replace(/\.\.\.$/, "");
	const cut = excerpt.startsWith("...") ? source.indexOf(shown) - 3 : 0;
	const column = caret + cut;
	return column >= 0 && column <= source.length ? before + column : -1;
}

/** Some errors tell a word only: `syntax error at or near "SELEC"`. */
function quoted(text: string, statement: string): number {
	if (/at end of input/.test(text)) return Math.max(0, statement.trimEnd().length - 1);
	const word = /at or near "([^"]+)"/.exec(text)?.[1];
	return word === undefined ? -1 : statement.indexOf(word);
}
