// The whole state of the page is its address: session, view, window, filter, selection, and what a view adds.

import { filterText } from "../api/session";
import type { Filter } from "../api/types";
import { isNumeric, LISTS } from "../lib/filters";

/** Which part of the session is shown: all of it, a fixed part, or the newest part of a running recording. */
export type TimeWindow = { kind: "all" } | { kind: "range"; from: number; to: number } | { kind: "last"; span: number };

export interface PageState {
	/** Id of the session; null where a view is about several. */
	session: string | null;
	view: string;
	window: TimeWindow;
	filter: Filter;
	/** The selected request. */
	rid: number | null;
	/** What the view itself keeps: sort order, column choice, ... */
	params: Readonly<Record<string, string>>;
}

export const START: PageState = {
	session: null,
	view: "sessions",
	window: { kind: "all" },
	filter: {},
	rid: null,
	params: {},
};

const OWN = new Set(["s", "view", "from", "to", "last", "f", "rid"]);

/** What an address says. Whatever it does not say, or says wrongly, is as at the start. */
export function parseState(search: string): PageState {
	const query = new URLSearchParams(search);
	const session = query.get("s");
	const params: Record<string, string> = {};
	for (const [name, value] of query) if (!OWN.has(name)) params[name] = value;
	return {
		session,
		view: query.get("view") ?? (session ? "overview" : "sessions"),
		window: parseWindow(query),
		filter: parseFilter(query.get("f")),
		rid: number(query.get("rid")),
		params,
	};
}

function number(text: string | null): number | null {
	if (text === null || text.trim() === "") return null;
	const value = Number(text);
	return Number.isFinite(value) && value >= 0 ? value : null;
}

function parseWindow(query: URLSearchParams): TimeWindow {
	const from = number(query.get("from"));
	const to = number(query.get("to"));
	if (from !== null && to !== null && to > from) return { kind: "range", from, to };
	const span = number(query.get("last"));
	return span !== null && span > 0 ? { kind: "last", span } : { kind: "all" };
}

function isNumbers(value: unknown): value is number[] {
	return Array.isArray(value) && value.length > 0 && value.every((v) => typeof v === "number" && Number.isFinite(v));
}

function isTexts(value: unknown): value is string[] {
	return Array.isArray(value) && value.length > 0 && value.every((v) => typeof v === "string");
}

/** The filter of an address; members that are not what they must be are left out. */
export function parseFilter(text: string | null): Filter {
	if (!text) return {};
	let raw: unknown;
	try {
		raw = JSON.parse(text);
	} catch {
		return {};
	}
	if (typeof raw !== "object" || raw === null) return {};
	const from = raw as Record<string, unknown>;
	const filter: Filter = {};
	for (const member of LISTS) {
		for (const name of [member, `not_${member}`] as const) {
			const value = from[name];
			if (isNumeric(member) ? isNumbers(value) : isTexts(value)) Object.assign(filter, { [name]: value });
		}
	}
	for (const name of ["path", "not_path"] as const) {
		const value = from[name];
		if (typeof value === "string" && value !== "") filter[name] = value;
	}
	const error = from["error"];
	if (error === "any" || error === "none" || isTexts(error)) filter.error = error;
	if (isTexts(from["not_error"])) filter.not_error = from["not_error"];
	const dur = from["dur"];
	if (Array.isArray(dur) && dur.length === 2) {
		const bound = (v: unknown) => (typeof v === "number" && Number.isFinite(v) && v >= 0 ? v : null);
		const low = bound(dur[0]);
		const high = bound(dur[1]);
		if (low !== null || high !== null) filter.dur = [low, high];
	}
	return filter;
}

/** The address of a state, beginning with `?`. */
export function formatState(state: PageState): string {
	const query = new URLSearchParams();
	if (state.session !== null) query.set("s", state.session);
	query.set("view", state.view);
	if (state.window.kind === "range") {
		query.set("from", bound(state.window.from));
		query.set("to", bound(state.window.to));
	} else if (state.window.kind === "last") {
		query.set("last", bound(state.window.span));
	}
	const filter = filterText(state.filter);
	if (filter) query.set("f", filter);
	if (state.rid !== null) query.set("rid", String(state.rid));
	for (const name of Object.keys(state.params).sort()) {
		const value = state.params[name];
		if (value !== undefined && value !== "") query.set(name, value);
	}
	return `?${query}`;
}

/** Tenths of a nanosecond: enough for the narrowest window, and an address that can be read. */
function bound(ns: number): string {
	return String(Math.round(ns * 10) / 10);
}

/** The token that stands in the fragment of a printed address: `#token=...`. */
export function tokenOf(fragment: string): string | null {
	return new URLSearchParams(fragment.replace(/^#/, "")).get("token");
}
