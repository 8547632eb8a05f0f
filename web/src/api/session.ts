// The addresses of the server, one function each.

import { Columns } from "./arrow";
import type { Client } from "./client";
import type { Filter, LiveState, Span } from "./types";

/** What most addresses take: a window (null: the whole session), a filter, and how many buckets are wanted. */
export interface Selection {
	span?: Span | null;
	filter?: Filter;
	pixels?: number;
}

export type TilesBy = "none" | "syscall" | "class" | "purpose" | "layer" | "thread" | "process" | "file";
export type TopBy = "file" | "path" | "syscall" | "thread" | "process" | "class" | "errno" | "comm";

/** The filter as the server takes it, with its members in one order, so that equal filters are equal texts. */
export function filterText(filter: Filter): string {
	const names = Object.keys(filter).sort() as (keyof Filter)[];
	if (names.length === 0) return "";
	return JSON.stringify(Object.fromEntries(names.map((name) => [name, filter[name]])));
}

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
	return Columns.read(await client.bytes(path, signal ? { signal } : {}));
}

/** The lines of the live stream, until it ends or is cancelled. */
export async function* liveLines(client: Client, id: string, signal: AbortSignal): AsyncGenerator<LiveState> {
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
		for (const line of lines) if (line.trim() !== "") yield JSON.parse(line) as LiveState;
	}
}
