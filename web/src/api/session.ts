// The addresses of the server, one function each.

import type { Span } from "../lib/scale";
import { filterText } from "../state/url";
import { Columns } from "./arrow";
import type { Client } from "./client";
import type { Filter } from "./types";

/** A session in the list. */
export interface SessionSummary {
	id: string;
	/** Quoted as for a shell; null when running targets were recorded. */
	command: string | null;
	/** What was recorded, in words; empty for a command. */
	target: string;
	host: string;
	started_unix_ms: number;
	/** Null while it goes on, and when its recorder was killed. */
	duration_ns: number | null;
	/** Rows of all tables. */
	rows: number;
	/** Size on disk. */
	bytes: number;
	seen: number;
	stored: number;
	lost: number;
	live: boolean;
	/** Its recorder ended without closing it. */
	killed: boolean;
	exit_status: number | null;
	/** What an imported session was made of. */
	source: string | null;
	/** Why it cannot be opened; all else says nothing then. */
	error: { what: string; subject: string; next: string } | null;
}

export interface LayerState {
	name: string;
	recorded: boolean;
	rows: number;
	/** Why there is nothing. */
	reason: string;
}

export interface Counted {
	seen: number;
	stored: number;
	lost: number;
	expired: number;
	counted: number;
	missing: number;
	layers_lost: number;
}

export interface Description extends SessionSummary {
	/** Begin of the recording on the clock of the tables. */
	start_ns: number;
	/** Where the calls begin and end, since the start; null without calls. */
	span: Span | null;
	tables: { name: string; rows: number }[];
	layers: LayerState[];
	losses: { stage: string; layer: string; syscall: string; count: number; bytes: number }[];
	totals: Counted;
	/** What is missing or damaged, a sentence each. */
	problems: string[];
	options: { detail: string; syscalls: string[]; filters: string[]; other: string[] };
	not_observable: string[];
	views: string[];
}

/** A line of the live stream. */
export interface LiveLine {
	end: number;
	live: boolean;
	totals: Counted;
}

export interface Thread {
	pid: number | null;
	tid: number;
	comm: string | null;
	process: string | null;
	calls: number;
	time_ns: number;
	start: number | null;
	end: number | null;
}

/** A row of a table, by the names of its columns; times are since the session's start. */
export type Row = Readonly<Record<string, string | number | boolean | null>>;

/** One request, and everything that was seen below it. */
export interface RequestAnswer {
	/** The table that its row is in: syscalls, faults or writeback. */
	table: string;
	row: Row;
	slices: Row[];
	waits: Row[];
	irqs: Row[];
	block: { row: Row; bios: Row[] }[];
	pagecache: Row[];
	neighbours: { before: Row[]; after: Row[] };
}

export interface Finding {
	rule: string;
	severity: string;
	title: string;
	lost_ns?: number | null;
	subject?: string | null;
	advice?: string | null;
	evidence?: unknown;
	sql?: string | null;
	from_ns?: number | null;
	to_ns?: number | null;
}

/** What most addresses take: a window (null: the whole session), a filter, and how many buckets are wanted. */
export interface Selection {
	span?: Span | null;
	filter?: Filter;
	pixels?: number;
}

export type TilesBy = "none" | "syscall" | "class" | "thread" | "process" | "file";
export type TopBy = "file" | "syscall" | "thread" | "process" | "class" | "errno" | "comm";

/** The part of an address after `?`. Two equal selections give equal texts, so that it can be a key. */
export function selectionText(selection: Selection, more: Readonly<Record<string, string | number>> = {}): string {
	const query = new URLSearchParams();
	for (const [name, value] of Object.entries(more)) query.set(name, String(value));
	if (selection.span) {
		query.set("from", Math.floor(selection.span.from).toFixed(0));
		query.set("to", Math.ceil(selection.span.to).toFixed(0));
	}
	if (selection.pixels !== undefined) query.set("pixels", String(Math.max(1, Math.round(selection.pixels))));
	const filter = filterText(selection.filter ?? {});
	if (filter) query.set("f", filter);
	const text = query.toString();
	return text ? `?${text}` : "";
}

export function sessionPath(id: string, rest = ""): string {
	return `/sessions/${encodeURIComponent(id)}${rest}`;
}

export async function columns(client: Client, path: string, signal?: AbortSignal): Promise<Columns> {
	return Columns.from(await client.bytes(path, signal ? { signal } : {}));
}

/** The lines of the live stream, until it ends or is cancelled. */
export async function* liveLines(client: Client, id: string, signal: AbortSignal): AsyncGenerator<LiveLine> {
	const path = sessionPath(id, "/live");
	const answer = await client.request(path, { signal });
	const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
	if (!reader) return;
	let rest = "";
	for (;;) {
		let part: ReadableStreamReadResult<string>;
		try {
			part = await reader.read();
		} catch (error) {
			throw client.lost(error, path);
		}
		if (part.done) return;
		rest += part.value;
		const lines = rest.split("\n");
		rest = lines.pop() ?? "";
		for (const line of lines) if (line.trim() !== "") yield JSON.parse(line) as LiveLine;
	}
}
