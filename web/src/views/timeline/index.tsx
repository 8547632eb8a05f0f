// A lane per thread, from hours to nanoseconds.

import { type RefObject, useEffect, useMemo, useRef, useState } from "react";
import { filterText } from "../../api/session";
import type { ThreadRow, Threads } from "../../api/types";
import { RequestCard } from "../../components/request/card";
import { Segmented } from "../../components/segmented";
import { Empty, ErrorState, Loading } from "../../components/states";
import { hasRows } from "../../lib/tables";
import { useShortcut } from "../../state/keys";
import { archive } from "../../state/server";
import { resolveWindow, useJson, useSession } from "../../state/session";
import { store, useParam, useRestedPage } from "../../state/store";
import { Board } from "./Board";
import { Key } from "./Key";
import { keepPlaces, lanesOf, type Order, orderThreads } from "./lanes";
import { Machine } from "./Machine";
import { type ColorBy, NAME_WIDTH } from "./paint";
import "./style.css";

const ORDERS: readonly (readonly [Order, string])[] = [
	["tree", "process tree"],
	["time", "most time"],
	["start", "start"],
	["name", "name"],
];

const WHO = [
	["window", "active here"],
	["all", "all threads"],
] as const;

const COLORS: readonly (readonly [ColorBy, string])[] = [
	["duration", "duration"],
	["kind", "system call"],
];

export default function Timeline() {
	const page = useRestedPage();
	const session = useSession();
	const [orderParam, setOrder] = useParam("order", "tree");
	const order = ORDERS.find(([id]) => id === orderParam)?.[0] ?? "tree";
	const [who, setWho] = useParam("who", "window");
	const [byParam, setBy] = useParam("color", "duration");
	const by = COLORS.find(([id]) => id === byParam)?.[0] ?? "duration";
	const [openParam, setOpen] = useParam("open", "");
	const open = useMemo(() => new Set(openParam === "" ? [] : openParam.split("\n")), [openParam]);
	const toggle = (group: string) => {
		const next = new Set(open);
		if (!next.delete(group)) next.add(group);
		setOpen([...next].join("\n"));
	};
	const [layersParam, setLayers] = useParam("layers", "");
	const layers = layersParam === "1";
	const [statesParam, setStates] = useParam("states", "1");
	const hasWaits = hasRows(session.about, "waits");
	const states = hasWaits && statesParam === "1";
	const [spansParam, setSpans] = useParam("spans", "1");
	// A session that was exported as a page has no answers about them.
	const hasSpans = hasRows(session.about, "spans") && (!archive || archive.views.includes("spans"));
	const spans = hasSpans && spansParam === "1";
	// The order is that of the whole session, so that lanes keep their places in every window.
	const answer = useJson<Threads>({ path: "threads", windowed: false });
	const everything = who === "all" || page.window.kind === "all";
	const active = useJson<Threads>(everything ? null : { path: "threads", params: { under_way: 1 } });
	const threads = useThreads(answer.data?.threads, order, session.live);
	const here = useMemo(() => new Set(active.data?.threads.map((t) => t.tid) ?? []), [active.data]);
	const span = resolveWindow(page.window, session.bounds);
	const noCalls = filterText(page.filter) === "" ? "No calls in this window" : "No calls like these in this window";
	const quiet = active.data !== undefined && !threads.some((thread) => here.has(thread.tid));
	const existing = useMemo(
		() => new Set(threads.filter((thread) => existed(thread, span.from, span.to)).map((thread) => thread.tid)),
		[threads, span.from, span.to],
	);
	const rows = useMemo(() => {
		// Where no thread has calls, the strips have something to say of all that existed.
		const chosen = quiet && states ? existing : here;
		const shown = (tid: number) => everything || active.data === undefined || chosen.has(tid);
		return lanesOf(threads, shown, open, order === "tree");
	}, [threads, everything, active.data, here, existing, quiet, states, open, order]);
	const switchLayers = () => setLayers(layers ? "" : "1");
	// Nothing below the calls was recorded: there is nothing to switch on.
	const recorded = session.about.layers.some((layer) => layer.name !== "syscall" && layer.recorded);
	useShortcut(["l"], "The layers below the calls, a row each", "Timeline", () => recorded && switchLayers());
	useShortcut(["Escape"], "Close the selected call", "Timeline", () => {
		if (store.get().rid !== null) store.go({ rid: null });
	});
	const board = useRef<HTMLDivElement>(null);
	usePointerLine(board);
	let body: React.ReactNode;
	if (answer.error && !answer.data) body = <ErrorState error={answer.error} />;
	else if (!answer.data) body = <Loading />;
	else if (threads.length === 0) {
		body = <Empty title="No thread has calls like these">Remove a filter.</Empty>;
	} else if (rows.length === 0) {
		body = (
			<Empty title={states ? "No thread existed in this window" : noCalls}>
				{hasWaits && !states
					? "Switch on States to see what the threads did meanwhile, widen the window (0), or show all threads."
					: "Widen the window (0), or show all threads."}
			</Empty>
		);
	} else {
		body = (
			<Board
				rows={rows}
				layers={layers}
				states={states}
				spans={spans}
				quiet={quiet ? noCalls : null}
				by={by}
				toggle={toggle}
			/>
		);
	}
	return (
		<div className={page.rid === null ? "timeline" : "timeline with-card"}>
			<div className="timeline-bar">
				<span className="faint no-picture">Lanes</span>
				<Segmented label="Order of the lanes" value={order} options={ORDERS} onChange={setOrder} />
				<Segmented label="Which threads" value={who === "all" ? "all" : "window"} options={WHO} onChange={setWho} />
				<span className="faint no-picture">Color</span>
				<Segmented label="Color by" value={by} options={COLORS} onChange={setBy} />
				<button
					type="button"
					className={layers ? "button on timeline-layers" : "button timeline-layers"}
					aria-pressed={layers}
					disabled={!recorded}
					title={
						recorded
							? "Below the calls of each thread, one row per layer (l)"
							: "No layer below the calls was recorded: record with --layers all"
					}
					onClick={switchLayers}
				>
					Layers
				</button>
				<button
					type="button"
					className={states ? "button on timeline-layers" : "button timeline-layers"}
					aria-pressed={states}
					disabled={!hasWaits}
					title={
						hasWaits
							? "Below the calls of each thread: when it ran, waited for a CPU, and was blocked"
							: "No waits of threads were recorded: record with --layers sched"
					}
					onClick={() => setStates(states ? "0" : "1")}
				>
					States
				</button>
				{hasSpans ? (
					<button
						type="button"
						className={spans ? "button on timeline-layers" : "button timeline-layers"}
						aria-pressed={spans}
						title="Above the calls of each thread: requests of the application, as it traced them itself"
						onClick={() => setSpans(spans ? "0" : "1")}
					>
						Spans
					</button>
				) : null}
				<Key layers={layers} by={by} />
				{answer.data && answer.data.total > threads.length ? (
					<span className="faint">
						{threads.length} of {answer.data.total} threads with the most time
					</span>
				) : null}
			</div>
			<div className="timeline-board" ref={board}>
				<Machine />
				{body}
				<div className="timeline-pointer" aria-hidden="true" />
			</div>
			{page.rid === null ? null : (
				<aside className="timeline-card" aria-label="Selected call">
					<RequestCard rid={page.rid} />
				</aside>
			)}
		</div>
	);
}

/** Whether a thread existed at some time of a window, as far as is known. */
function existed({ start, end }: ThreadRow, from: number, to: number): boolean {
	return (start ?? from) <= to && (end ?? to) >= from;
}

/** A line at the time below the pointer, across the machine's plots and the lanes. */
function usePointerLine(board: RefObject<HTMLDivElement | null>): void {
	useEffect(() => {
		const element = board.current;
		const line = element?.querySelector<HTMLElement>(":scope > .timeline-pointer");
		if (!element || !line) return;
		const stop = new AbortController();
		const move = (event: PointerEvent) => {
			const x = event.clientX - element.getBoundingClientRect().left;
			const over = event.target instanceof Element && event.target.closest(".board, .machine-plots") !== null;
			line.hidden = !over || x < NAME_WIDTH || event.buttons !== 0;
			line.style.transform = `translateX(${Math.round(x)}px)`;
		};
		const leave = () => {
			line.hidden = true;
		};
		leave();
		element.addEventListener("pointermove", move, { signal: stop.signal });
		element.addEventListener("pointerleave", leave, { signal: stop.signal });
		return () => stop.abort();
	}, [board]);
}

/** The threads in their order; in a running recording they keep their places. */
function useThreads(threads: readonly ThreadRow[] | undefined, order: Order, live: boolean): ThreadRow[] {
	const [places] = useState<{ order: Order; threads: ThreadRow[] }>(() => ({ order, threads: [] }));
	return useMemo(() => {
		const sorted = orderThreads(threads ?? [], order);
		const next = live && places.order === order ? keepPlaces(places.threads, sorted) : sorted;
		places.order = order;
		places.threads = next;
		return next;
	}, [threads, order, live, places]);
}
