// The session that is shown: its description, and what a running recording adds to it.

import { createContext, type ReactNode, useContext, useEffect, useMemo, useState, useSyncExternalStore } from "react";
import type { Columns } from "../api/arrow";
import { type ApiError, asApiError, isAbort } from "../api/client";
import { columns, filterText, liveLines, type Selection, selectionText, sessionPath } from "../api/session";
import type { Filter, LiveState, SessionDescription } from "../api/types";
import { mergeFilters } from "../lib/filters";
import { clampSpan, type Span } from "../lib/scale";
import { askForLatencies, useLatencies } from "./first";
import { type Turn, turns } from "./quiet";
import { type Resource, useResource } from "./resource";
import { client } from "./server";
import { Shared } from "./shared";
import { usePage, useRestedPage } from "./store";
import type { TimeWindow } from "./url";

export interface Session {
	id: string;
	about: SessionDescription;
	/** From the first row (or the start) to the newest. */
	bounds: Span;
	live: boolean;
	/** Parts have been left out since it was opened, because their rows are damaged. */
	reduced: boolean;
	/** Grows whenever rows have become visible. */
	revision: number;
	seen: number;
	stored: number;
	lost: number;
}

const Context = createContext<Session | null>(null);

/** The session of the page; only below `SessionProvider`. */
export function useSession(): Session {
	const session = useContext(Context);
	if (!session) throw new Error("a view of a session was shown without one");
	return session;
}

export function useMaybeSession(): Session | null {
	return useContext(Context);
}

const RECONNECT_MS = 1000;

interface Live extends LiveState {
	id: string;
	revision: number;
}

function useLive(id: string, wanted: boolean): Live | null {
	const [live, setLive] = useState<Live | null>(null);
	const generation = useSyncExternalStore(client.subscribe, client.getGeneration);
	// biome-ignore lint/correctness/useExhaustiveDependencies: the generation connects again after the server was gone
	useEffect(() => {
		if (!wanted) return;
		const controller = new AbortController();
		let timer: ReturnType<typeof setTimeout> | null = null;
		const listen = async () => {
			try {
				for await (const line of liveLines(client, id, controller.signal)) {
					setLive((before) => ({ ...line, id, revision: (before?.id === id ? before.revision : 0) + 1 }));
					if (!line.live) return;
				}
			} catch (error) {
				if (controller.signal.aborted || isAbort(error)) return;
			}
			if (!controller.signal.aborted) timer = setTimeout(listen, RECONNECT_MS);
		};
		void listen();
		return () => {
			controller.abort();
			if (timer !== null) clearTimeout(timer);
		};
	}, [id, wanted, generation]);
	return live?.id === id ? live : null;
}

export interface Opening {
	session: Session | null;
	error: ApiError | null;
}

/** Opens a session; `render` gets it, or what went wrong. */
export function SessionProvider({ id, render }: { id: string; render: (opening: Opening) => ReactNode }): ReactNode {
	const [ended, setEnded] = useState(0);
	const about = useResource(
		sessionPath(id),
		(signal) => client.json<SessionDescription>(sessionPath(id), signal),
		ended,
	);
	const opened = about.data && !about.stale ? about.data : undefined;
	// The rows of a large session are compared with their checksums while its sums are already shown.
	const unchecked = opened !== undefined && !opened.checked;
	const path = `${sessionPath(id)}?checked=1`;
	const checked = useResource(
		unchecked ? path : null,
		async (signal) => {
			await turns.shown.passed(signal);
			return client.json<SessionDescription>(path, signal);
		},
		ended,
	);
	const description = unchecked && checked.data && !checked.stale ? checked.data : opened;
	// The answers so far are of the damaged parts, too.
	const reduced =
		opened !== undefined && description !== opened && description?.problems.length !== opened.problems.length;
	const live = useLive(id, description?.live === true);
	const over = live !== null && !live.live;
	// The description of a recording that has ended has its final figures.
	useEffect(() => {
		if (over) setEnded((n) => n + 1);
	}, [over]);
	const session = useMemo<Session | null>(() => {
		if (!description) return null;
		const running = live !== null ? live.live : description.live;
		return {
			id,
			about: description,
			bounds: boundsOf(description, live?.end ?? 0),
			live: running,
			reduced,
			revision: (live?.revision ?? 0) + ended * 1e6 + (reduced ? 0.5 : 0),
			seen: Math.max(description.seen, live?.totals.seen ?? 0),
			stored: Math.max(description.stored, live?.totals.stored ?? 0),
			lost: Math.max(description.lost, live?.totals.lost ?? 0),
		};
	}, [id, description, live, ended, reduced]);
	return <Context value={session}>{render({ session, error: about.error ? asApiError(about.error) : null })}</Context>;
}

/** From the first call to the newest; something also when there is no call yet. */
function boundsOf(about: SessionDescription, end: number): Span {
	const from = about.span?.from ?? 0;
	return { from, to: Math.max(about.span?.to ?? 0, end, from + 1000) };
}

/** The part of the session that a window means now. */
export function resolveWindow(window: TimeWindow, bounds: Span): Span {
	if (window.kind === "range") return { from: window.from, to: window.to };
	if (window.kind === "all") return bounds;
	return clampSpan({ from: bounds.to - window.span, to: bounds.to }, bounds);
}

export interface Shown {
	span: Span;
	/** The window grows or moves as rows arrive. */
	following: boolean;
}

/** The window on the screen. */
export function useShown(): Shown {
	const { window } = usePage();
	const { bounds, live } = useSession();
	return useMemo(
		() => ({ span: resolveWindow(window, bounds), following: live && window.kind !== "range" }),
		[window, bounds, live],
	);
}

export interface Question {
	/** Below the session's address: `tiles`, `top`, ... */
	path: string;
	params?: Readonly<Record<string, string | number>>;
	/** The window of the page is sent unless this is false. */
	windowed?: boolean;
	/** The filter of the page is sent unless this is false. */
	filtered?: boolean;
	/** Holds besides the page's filter. */
	filter?: Filter;
	pixels?: number;
	/** When it is asked; with the plots unless it says otherwise. `later` is for what takes the server long. */
	turn?: Turn;
}

/** Of a question about the whole recording. */
export const WHOLE = { windowed: false, filtered: false } as const;

/** What identifies a question, apart from rows that are added while it stands. */
function useAsked(question: Question | null): { key: string | null; revision: number; path: () => string } {
	const page = useRestedPage();
	const session = useSession();
	const { window } = page;
	const span = resolveWindow(window, session.bounds);
	const following = session.live && window.kind !== "range";
	const windowed = question?.windowed !== false;
	const given: Filter = question?.filtered === false ? {} : page.filter;
	const filter: Filter = question?.filter ? mergeFilters(given, question.filter) : given;
	const selection: Selection = { filter };
	if (question?.pixels !== undefined) selection.pixels = question.pixels;
	if (windowed && window.kind !== "all") selection.span = span;
	const path = () =>
		question ? sessionPath(session.id, `/${question.path}${selectionText(selection, question.params)}`) : "";
	// Rows that come at the end change a fixed window only where it reaches that far.
	const touched = session.live && (!windowed || following || span.to >= session.bounds.to - 2e9);
	const key =
		question === null
			? null
			: windowed && window.kind === "last"
				? `${session.id} ${question.path} last ${window.span} ${question.pixels ?? ""} ${JSON.stringify(question.params ?? {})} ${filterText(filter)}`
				: path();
	return { key, revision: touched ? session.revision : session.live ? -1 : session.reduced ? -3 : -2, path };
}

/** Answers of sessions that do not grow. */
const shared = new Shared(40);

/** `ask`, once for all that ask for `path` of a session to which nothing is added, when it is their turn. */
export function useLoad<T>(
	path: string | (() => string),
	ask: (signal: AbortSignal) => Promise<T>,
	turn: Turn = "plots",
): (signal: AbortSignal) => Promise<T> {
	const { live, revision } = useSession();
	const load = (signal: AbortSignal) => {
		if (live) return ask(signal);
		// After a recording has ended, and after the server was away, answers may be others.
		const asked = typeof path === "string" ? path : path();
		return shared.load(`${client.getGeneration()} ${revision} ${asked}`, signal, ask);
	};
	return (signal) => turns.take(turn, () => load(signal), signal);
}

/** Buckets of the strip of the whole session: as many as half of the pixels, in steps, so that others can ask the same. */
export function stripPixels(): number {
	return Math.ceil(window.innerWidth / 2 / 64) * 64;
}

/** Arrow columns for the page's window and filter. */
export function useColumns(question: Question | null): Resource<Columns> {
	const { key, revision, path } = useAsked(question);
	const load = useLoad(path, (signal) => columns(client, path(), signal), question?.turn);
	return useResource(key, load, revision);
}

/** The same for answers in JSON. */
export function useJson<T>(question: Question | null): Resource<T> {
	const { key, revision, path } = useAsked(question);
	const load = useLoad(path, (signal) => client.json<T>(path(), signal), question?.turn);
	return useResource(key, load, revision);
}

/**
 * Sums of all calls and page faults over time by what they do, which every view of a session shows: one question for all of
 * them. They have histograms of the durations of calls, except for the first ones of the page.
 */
export function useSums(more: Pick<Question, "windowed"> = {}): Resource<Columns> {
	const latencies = useLatencies();
	const latency = latencies ? { latency: 1 } : {};
	const sums = useColumns({
		path: "tiles",
		params: { by: "purpose", ...latency, busy: 1, faults: 1 },
		pixels: stripPixels(),
		...more,
	});
	const wanted = !latencies && (sums.data !== undefined || sums.error !== null);
	useEffect(() => {
		if (!wanted) return;
		const left = new AbortController();
		void askForLatencies(left.signal);
		return () => left.abort();
	}, [wanted]);
	return sums;
}
