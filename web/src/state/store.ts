// The page's state, kept in the address: every change is an entry in the browser's history, so that "back" undoes a
// zoom, a filter or a selection.

import { useSyncExternalStore } from "react";
import type { Filter } from "../api/types";
import type { ListMember } from "../lib/filters";
import type { Span } from "../lib/scale";
import { archive } from "./server";
import { formatState, type PageState, parseState, type TimeWindow } from "./url";

/** The parts of the browser that the store needs. */
export interface Browser {
	search(): string;
	push(address: string): void;
	replace(address: string): void;
	onBack(listener: () => void): void;
	/** What a link to an address has; the address itself where nothing is said. */
	href?(address: string): string;
}

/** A gesture (a wheel, a drag) is one entry in the history, however many windows it passes through. */
const SETTLE_MS = 300;
const LOOK_MS = 500;

type Patch = Partial<Omit<PageState, "params">> & { params?: Readonly<Record<string, string | null>> };

export class Store {
	private state: PageState;
	/** The state as it was when its window last rested: what is asked of the server. */
	private rested: PageState;
	private restedAt = 0;
	private settling: ReturnType<typeof setTimeout> | null = null;
	private readonly listeners = new Set<() => void>();

	constructor(private readonly browser: Browser) {
		this.state = parseState(browser.search());
		this.rested = this.state;
		browser.onBack(() => {
			this.forgetGesture();
			this.set(parseState(browser.search()));
		});
	}

	subscribe = (listener: () => void): (() => void) => {
		this.listeners.add(listener);
		return () => this.listeners.delete(listener);
	};

	get = (): PageState => this.state;

	/** The state, without the windows that a gesture only passes through. */
	getRested = (): PageState => this.rested;

	/** Changes the state as one step that "back" undoes; `replace` makes it part of the step before. */
	go(patch: Patch, how: "push" | "replace" = "push"): void {
		this.commitGesture();
		const next = this.patched(patch);
		const address = formatState(next);
		if (address !== formatState(this.state)) {
			if (how === "push") this.browser.push(address);
			else this.browser.replace(address);
		}
		this.set(next);
	}

	/** Another state in place of this one. */
	show(state: PageState): void {
		this.commitGesture();
		this.browser.replace(formatState(state));
		this.set(state);
	}

	/** The window while a gesture moves it; it becomes a step when it has rested. */
	move(window: TimeWindow): void {
		if (this.settling !== null) clearTimeout(this.settling);
		this.settling = setTimeout(() => this.commitGesture(), SETTLE_MS);
		// A long gesture shows what it has come to now and then.
		const next = { ...this.state, window };
		if (Date.now() - this.restedAt > LOOK_MS) this.rest(next);
		this.set(next);
	}

	/** The address of a state that differs as told: for links. */
	href(patch: Patch): string {
		const address = formatState(this.patched(patch));
		return this.browser.href?.(address) ?? address;
	}

	/** The state as it stands in addresses. */
	address(): string {
		return formatState(this.state);
	}

	private patched(patch: Patch): PageState {
		const { params, ...rest } = patch;
		const next: PageState = { ...this.state, ...rest };
		// What a view keeps for itself means nothing to another.
		let kept: Record<string, string> = next.view === this.state.view ? { ...this.state.params } : {};
		if (next.session !== this.state.session) {
			kept = {};
			if (patch.window === undefined) next.window = { kind: "all" };
			if (patch.filter === undefined) next.filter = {};
			if (patch.rid === undefined) next.rid = null;
		}
		for (const [name, value] of Object.entries(params ?? {})) {
			if (value === null) delete kept[name];
			else kept[name] = value;
		}
		return { ...next, params: kept };
	}

	private commitGesture(): void {
		if (this.settling === null) return;
		this.forgetGesture();
		this.set(this.state);
		const address = formatState(this.state);
		if (address !== formatState(parseState(this.browser.search()))) this.browser.push(address);
	}

	private forgetGesture(): void {
		if (this.settling !== null) clearTimeout(this.settling);
		this.settling = null;
	}

	private rest(state: PageState): void {
		this.rested = state;
		this.restedAt = Date.now();
	}

	private set(state: PageState): void {
		this.state = state;
		if (this.settling === null) this.rest(state);
		for (const listener of this.listeners) listener();
	}
}

/** A saved page is a file: only what stands behind # may change in its address. */
function fileBrowser(start: string): Browser {
	const search = () => (window.location.hash.startsWith("#?") ? window.location.hash.slice(1) : start);
	return {
		search,
		push: (address) => window.history.pushState(null, "", `#${address}`),
		replace: (address) => window.history.replaceState(null, "", `#${address}`),
		onBack: (listener) => window.addEventListener("popstate", listener),
		href: (address) => `#${address}`,
	};
}

const pageBrowser: Browser = {
	search: () => window.location.search,
	push: (address) => window.history.pushState(null, "", address),
	replace: (address) => window.history.replaceState(null, "", address),
	onBack: (listener) => window.addEventListener("popstate", listener),
};

const noBrowser: Browser = { search: () => "", push: () => {}, replace: () => {}, onBack: () => {} };

export const store = new Store(
	typeof window === "undefined" ? noBrowser : archive ? fileBrowser(archive.start) : pageBrowser,
);

/** The state, changing with every frame of a gesture. */
export function usePage(): PageState {
	return useSyncExternalStore(store.subscribe, store.get);
}

/**
 * The state for everything that needs not follow a gesture frame by frame: questions to the server, links, what
 * surrounds the plots.
 */
export function useRestedPage(): PageState {
	return useSyncExternalStore(store.subscribe, store.getRested);
}

/** One of the view's own parameters. */
export function useParam(name: string, otherwise: string): [string, (value: string) => void] {
	const value = useRestedPage().params[name] ?? otherwise;
	const set = (next: string) => store.go({ params: { [name]: next === otherwise ? null : next } }, "replace");
	return [value, set];
}

export function showSpan(span: Span): void {
	store.go({ window: { kind: "range", from: span.from, to: span.to } });
}

export function setFilter(filter: Filter): void {
	store.go({ filter });
}

/** Adds a value to a list of the filter, or takes it out when it is there. `not` excludes instead. */
export function toggleFilter(member: ListMember, value: string | number, not = false): void {
	setFilter(toggled(store.get().filter, member, value, not));
}

/** The filter with a value of one of its lists added or taken out. */
export function toggled(filter: Filter, member: ListMember, value: string | number, not = false): Filter {
	const name = (not ? `not_${member}` : member) as keyof Filter;
	const other = (not ? member : `not_${member}`) as keyof Filter;
	const list = (filter[name] as (string | number)[] | undefined) ?? [];
	const next: Record<string, unknown> = { ...filter };
	const without = (of: keyof Filter) =>
		((filter[of] as (string | number)[] | undefined) ?? []).filter((v) => v !== value);
	const changed = list.includes(value) ? without(name) : [...list, value];
	if (changed.length > 0) next[name] = changed;
	else delete next[name];
	// A value cannot be asked for and excluded at once.
	const rest = without(other);
	if (rest.length > 0) next[other] = rest;
	else delete next[other];
	return next as Filter;
}
