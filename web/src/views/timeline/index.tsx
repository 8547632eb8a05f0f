// A lane per thread, from hours to nanoseconds.

import { useMemo, useState } from "react";
import type { ThreadRow, Threads } from "../../api/types";
import { RequestCard } from "../../components/request/card";
import { Segmented } from "../../components/segmented";
import { Empty, ErrorState, Loading } from "../../components/states";
import { useShortcut } from "../../state/keys";
import { useJson, useSession } from "../../state/session";
import { store, useParam, useRestedPage } from "../../state/store";
import { Board } from "./Board";
import { Key } from "./Key";
import { keepPlaces, type Order, orderThreads } from "./lanes";
import "./style.css";

const ORDERS: readonly (readonly [Order, string])[] = [
	["time", "most time"],
	["start", "start"],
	["name", "name"],
];

const WHO = [
	["all", "all threads"],
	["window", "with calls here"],
] as const;

export default function Timeline() {
	const page = useRestedPage();
	const session = useSession();
	const [order, setOrder] = useParam("order", "");
	// While the newest is followed, threads that have ended long ago would only be in the way.
	const following = session.live && page.window.kind === "last";
	const [who, setWho] = useParam("who", "");
	const [layersParam, setLayers] = useParam("layers", "");
	const layers = layersParam === "1";
	// Lanes with layers are tall: those without a call in sight would push the others off the screen.
	const inWindow = who === "" ? following || layers : who === "window";
	const answer = useJson<Threads>({ path: "threads", windowed: inWindow });
	// Time is that in the window then: lanes would change places with every step.
	const otherwise = inWindow ? "start" : "time";
	const kind: Order = order === "start" || order === "name" || order === "time" ? order : otherwise;
	const threads = useThreads(answer.data?.threads, kind, session.live && !inWindow);
	const switchLayers = () => setLayers(layers ? "" : "1");
	// Nothing below the calls was recorded: there is nothing to switch on.
	const recorded = session.about.layers.some((layer) => layer.name !== "syscall" && layer.recorded);
	useShortcut(["l"], "The layers below the calls, a row each", "Timeline", () => recorded && switchLayers());
	useShortcut(["Escape"], "Close the selected call", "Timeline", () => {
		if (store.get().rid !== null) store.go({ rid: null });
	});
	let body: React.ReactNode;
	if (answer.error && !answer.data) body = <ErrorState error={answer.error} />;
	else if (!answer.data) body = <Loading />;
	else if (threads.length === 0) {
		body = <Empty title="No thread has calls like these">Take a filter away, or record something else.</Empty>;
	} else body = <Board threads={threads} layers={layers} />;
	return (
		<div className={page.rid === null ? "timeline" : "timeline with-card"}>
			<div className="timeline-bar">
				<span className="faint">Lanes by</span>
				<Segmented label="Order of the lanes" value={kind} options={ORDERS} onChange={setOrder} />
				<Segmented label="Which threads" value={inWindow ? "window" : "all"} options={WHO} onChange={setWho} />
				<button
					type="button"
					className={layers ? "button on timeline-layers" : "button timeline-layers"}
					aria-pressed={layers}
					disabled={!recorded}
					title={
						recorded
							? "Below the calls of each thread a row for each layer that they went through (l)"
							: "No layer below the calls was recorded: record with --layers all"
					}
					onClick={switchLayers}
				>
					Layers
				</button>
				<Key layers={layers} />
				{answer.data && answer.data.total > threads.length ? (
					<span className="faint">
						{threads.length} of {answer.data.total} threads: those with the most time
					</span>
				) : null}
			</div>
			<div className="timeline-board">{body}</div>
			{page.rid === null ? null : (
				<aside className="timeline-card" aria-label="Selected call">
					<RequestCard rid={page.rid} />
				</aside>
			)}
		</div>
	);
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
