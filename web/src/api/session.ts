// The addresses of the server, one function each.

import type { Span } from "../lib/scale";
import { filterText } from "../state/url";
import { Columns } from "./arrow";
import type { Client } from "./client";
import type { Filter } from "./types";

/** A session in the list. */
export interface SessionSummary {
	id: string;
	command: string[];
	target?: string;
	host: string;
	/** Wall clock at the start, nanoseconds since 1970. */
	start_realtime_ns: number;
	duration_ns: number;
	rows: number;
	bytes_on_disk: number;
	seen: number;
	stored: number;
	lost: number;
	live: boolean;
	/** What an imported session was made of. */
	source?: string | null;
	/** Why it cannot be opened. */
	error?: { what: string; subject: string; next: string } | null;
}

export interface LayerInfo {
	name: string;
	recorded: boolean;
	/** Why it is not, or what is missing. */
	reason?: string | null;
}

export interface Description extends SessionSummary {
	start_ns: number;
	/** Where the rows begin and end, since the start. */
	span: Span;
	tables: { name: string; rows: number }[];
	layers: LayerInfo[];
	losses: { stage: string; syscall?: string | null; layer?: string | null; count: number }[];
	options: unknown;
	views: string[];
}

/** A line of the live stream. */
export interface LiveLine {
	end: number;
	live: boolean;
	seen?: number;
	stored?: number;
	lost?: number;
	rows?: number;
}

export interface Thread {
	pid: number;
	tid: number;
	comm: string;
	process: string;
	calls: number;
	time_ns: number;
	start: number | null;
	end: number | null;
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
