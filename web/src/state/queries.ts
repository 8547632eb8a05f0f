// Queries that the reader has saved, in this browser. Some of them are panels.

import { useSyncExternalStore } from "react";

/** How a result is drawn. */
export interface PlotChoice {
	form: "table" | "line" | "stack" | "dots";
	/** Names of columns; empty for what fits. */
	x: string;
	y: readonly string[];
	series: string;
	log: boolean;
}

export interface SavedQuery {
	id: string;
	name: string;
	sql: string;
	plot: PlotChoice;
	/** It stands on the page of panels. */
	panel: boolean;
	/** As a panel it takes the whole width. */
	wide: boolean;
}

export const TABLE: PlotChoice = { form: "table", x: "", y: [], series: "", log: false };

const KEY = "fathom.queries";

type Storage = Pick<globalThis.Storage, "getItem" | "setItem">;

/** What is saved; what is not as it must be is left out. */
export function parseQueries(text: string | null): SavedQuery[] {
	let raw: unknown;
	try {
		raw = JSON.parse(text ?? "[]");
	} catch {
		return [];
	}
	if (!Array.isArray(raw)) return [];
	const seen = new Set<string>();
	return raw.flatMap((value: unknown) => {
		const made = parseQuery(value);
		if (!made || seen.has(made.id)) return [];
		seen.add(made.id);
		return [made];
	});
}

/** What a file of queries says it is. */
const FILE = "fathom-queries";

/** Queries as a file that can be kept with a project, and read again here or by `fathom ui --panels`. */
export function queriesFile(list: readonly SavedQuery[]): string {
	const queries = list.map(({ id: _, ...query }) => query);
	return `${JSON.stringify({ [FILE]: 1, queries }, null, "\t")}\n`;
}

/** The queries of such a file; null when it is another one. */
export function parseFile(content: unknown): SavedQuery[] | null {
	if (typeof content !== "object" || content === null || !(FILE in content)) return null;
	const list = (content as Record<string, unknown>)["queries"];
	if (!Array.isArray(list)) return null;
	return list.flatMap((value: unknown, i) => {
		const made = typeof value === "object" && value !== null ? parseQuery({ ...value, id: `file ${i}` }) : null;
		return made ? [made] : [];
	});
}

function parseQuery(value: unknown): SavedQuery | null {
	if (typeof value !== "object" || value === null) return null;
	const from = value as Record<string, unknown>;
	const { id, name, sql } = from;
	if (typeof id !== "string" || typeof name !== "string" || typeof sql !== "string" || id === "") return null;
	return { id, name, sql, plot: parsePlot(from["plot"]), panel: from["panel"] === true, wide: from["wide"] === true };
}

function parsePlot(value: unknown): PlotChoice {
	if (typeof value !== "object" || value === null) return TABLE;
	const from = value as Record<string, unknown>;
	const text = (name: string) => (typeof from[name] === "string" ? (from[name] as string) : "");
	const form = text("form");
	const y = from["y"];
	return {
		form: form === "line" || form === "stack" || form === "dots" ? form : "table",
		x: text("x"),
		y: Array.isArray(y) ? y.filter((name) => typeof name === "string") : [],
		series: text("series"),
		log: from["log"] === true,
	};
}

export class Queries {
	private list: readonly SavedQuery[];
	private readonly listeners = new Set<() => void>();

	constructor(private readonly storage: Storage | null) {
		this.list = this.read();
	}

	subscribe = (listener: () => void): (() => void) => {
		this.listeners.add(listener);
		return () => this.listeners.delete(listener);
	};

	get = (): readonly SavedQuery[] => this.list;

	/** Another tab of the page has changed them. */
	refresh = (): void => {
		this.list = this.read();
		for (const listener of this.listeners) listener();
	};

	/** Saves a query; one of that name is replaced. Returns what was saved, or null when the browser keeps nothing. */
	save(query: Omit<SavedQuery, "id">): SavedQuery | null {
		// Another tab may have added some meanwhile.
		const before = this.read();
		const known = before.find((q) => q.name === query.name);
		const saved = { ...query, id: known?.id ?? freshId(before) };
		return this.write(known ? before.map((q) => (q === known ? saved : q)) : [...before, saved]) ? saved : null;
	}

	/** Saves several at once, as `save` does. Returns whether the browser keeps them. */
	adopt(added: readonly Omit<SavedQuery, "id">[]): boolean {
		return added.every((query) => this.save(query) !== null);
	}

	change(id: string, what: Partial<Omit<SavedQuery, "id">>): void {
		this.write(this.read().map((q) => (q.id === id ? { ...q, ...what } : q)));
	}

	remove(id: string): void {
		this.write(this.read().filter((q) => q.id !== id));
	}

	/** Moves a panel before (-1) or behind (1) its neighbor among the panels. */
	move(id: string, by: 1 | -1): void {
		const list = this.read();
		const panels = list.filter((q) => q.panel);
		const at = panels.findIndex((q) => q.id === id);
		const mine = panels[at];
		const other = panels[at + by];
		if (!mine || !other) return;
		this.write(list.map((q) => (q === mine ? other : q === other ? mine : q)));
	}

	private read(): SavedQuery[] {
		try {
			return parseQueries(this.storage?.getItem(KEY) ?? null);
		} catch {
			return [];
		}
	}

	private write(list: SavedQuery[]): boolean {
		try {
			this.storage?.setItem(KEY, JSON.stringify(list));
		} catch {
			return false;
		}
		this.list = list;
		for (const listener of this.listeners) listener();
		return this.storage !== null;
	}
}

function freshId(list: readonly SavedQuery[]): string {
	let number = list.length + 1;
	while (list.some((q) => q.id === `q${number}`)) number += 1;
	return `q${number}`;
}

function browserStorage(): Storage | null {
	try {
		return typeof window === "undefined" ? null : window.localStorage;
	} catch {
		return null;
	}
}

export const queries = new Queries(browserStorage());
if (typeof window !== "undefined") {
	window.addEventListener("storage", (event) => {
		if (event.key === KEY || event.key === null) queries.refresh();
	});
}

export function useQueries(): readonly SavedQuery[] {
	return useSyncExternalStore(queries.subscribe, queries.get);
}
