// The sessions of the directory that is served: what each was, how large, whether anything was lost.

import { useEffect, useState } from "react";
import type { Summary } from "../../api/set";
import type { SessionSummary } from "../../api/types";
import { Link } from "../../components/link";
import { Panel, Shown } from "../../components/panel";
import { Text } from "../../components/text";
import { ago, bytes, count, counted, duration, exact, exactDuration, visible, wallTime } from "../../lib/format";
import { useResource } from "../../state/resource";
import { client } from "../../state/server";
import { store, useParam } from "../../state/store";
import { Sums } from "./fleet";
import { Spark, SyncTime, useGlance, Worst } from "./glance";
import { Hosts } from "./hosts";
import { isKey, KEYS, TITLES } from "./keys";
import { labelsOf, matching } from "./match";
import { inOrder } from "./order";
import "./style.css";

/** The directory is looked at again this often: new sessions appear, running ones grow. */
const AGAIN_MS = 2000;

const ORDERS: Readonly<Record<string, (a: SessionSummary, b: SessionSummary) => number>> = {
	id: (a, b) => a.id.localeCompare(b.id),
	when: (a, b) => b.started_unix_ms - a.started_unix_ms,
	length: (a, b) => (b.duration_ns ?? 0) - (a.duration_ns ?? 0),
	calls: (a, b) => b.seen - a.seen,
	lost: (a, b) => b.lost - a.lost,
	size: (a, b) => b.bytes - a.bytes,
};

export default function Sessions() {
	const [tick, setTick] = useState(0);
	const [order, setOrder] = useParam("sort", "when");
	const [by, setBy] = useParam("by", "");
	useEffect(() => {
		const timer = setInterval(() => {
			if (!document.hidden) setTick((n) => n + 1);
		}, AGAIN_MS);
		return () => clearInterval(timer);
	}, []);
	const [chosen, setChosen] = useState<readonly string[]>([]);
	const list = useResource("/sessions", (signal) => client.json<SessionSummary[]>("/sessions", signal), tick);
	const set = useResource("/set", (signal) => client.json<Summary | null>("/set", signal));
	const [wanted, setWanted] = useState("");
	// Sums are asked for again when there is another session, or one has ended.
	const again = JSON.stringify(list.data?.map((session) => [session.id, session.live]) ?? []);
	const only = list.data?.length === 1 ? list.data[0] : undefined;
	// Served is a single session: whoever opens the page wants to see that one. The list is for who asks for it.
	useEffect(() => {
		if (only && !only.error && openedBare()) store.go({ session: only.id, view: "overview", params: {} }, "replace");
	}, [only]);
	const sessions = (
		<Panel
			title="Sessions"
			note={list.data ? `${list.data.length} in this ${set.data ? "set" : "directory"}` : ""}
			end={
				<>
					{set.data ? null : <By by={by} setBy={setBy} />}
					<input
						className="field sessions-filter"
						type="search"
						placeholder="Name, command, or job=17"
						aria-label="Show sessions whose name, command, or label (KEY=VALUE) has these words"
						value={wanted}
						onChange={(event) => setWanted(event.target.value)}
					/>
					<Compare chosen={inOrder(chosen, list.data ?? [])} />
				</>
			}
		>
			<Shown
				of={{ ...list, loading: list.loading && list.data === undefined }}
				height={200}
				empty={(sessions) => sessions.length === 0}
				emptyTitle="No sessions here yet"
				emptyText={
					<>
						Record one into this directory: <code>fathom record -o NAME.fathom -- COMMAND</code>. It appears here when
						it starts.
					</>
				}
			>
				{(sessions) =>
					isKey(by) && !set.data ? (
						<Sums
							by={by}
							again={again}
							narrow={(value) => {
								setWanted(value);
								setBy("");
							}}
						/>
					) : (
						<Table
							sessions={matching(sessions, wanted).sort(ORDERS[order] ?? ORDERS["when"])}
							order={order}
							setOrder={setOrder}
							chosen={chosen}
							choose={(id) =>
								setChosen((now) => (now.includes(id) ? now.filter((n) => n !== id) : [...now, id].slice(-2)))
							}
						/>
					)
				}
			</Shown>
		</Panel>
	);
	return (
		<div className="sessions-view">
			{set.data ? <Hosts set={set.data} /> : null}
			{sessions}
		</div>
	);
}

/** What the list is summed up by. */
function By({ by, setBy }: { by: string; setBy: (by: string) => void }) {
	return (
		<label className="sessions-by">
			<span className="quiet">Sum by</span>
			<select className="field" value={isKey(by) ? by : ""} onChange={(event) => setBy(event.target.value)}>
				<option value="">nothing</option>
				{KEYS.map((key) => (
					<option key={key} value={key}>
						{TITLES[key].toLowerCase()}
					</option>
				))}
			</select>
		</label>
	);
}

/** Whether the page was opened by an address that says nothing but the server. */
function openedBare(): boolean {
	return window.location.search === "";
}

interface TableProps {
	sessions: readonly SessionSummary[];
	order: string;
	setOrder: (order: string) => void;
	chosen: readonly string[];
	choose: (id: string) => void;
}

/** The session that began first is the one before, whichever was ticked first. */
function Compare({ chosen }: { chosen: readonly string[] }) {
	const [before = "", after = ""] = chosen;
	return (
		<button
			type="button"
			className="button"
			disabled={chosen.length !== 2}
			title={
				chosen.length === 2 ? `Before, the earlier: ${visible(before)}. After: ${visible(after)}` : "Tick two sessions"
			}
			onClick={() => store.go({ view: "compare", params: { before, after } })}
		>
			{chosen.length === 2 ? (
				<>
					Compare: <Text of={before} className="cut" /> → <Text of={after} className="cut" />
				</>
			) : (
				"Compare two"
			)}
		</button>
	);
}

function Table({ sessions, order, setOrder, chosen, choose }: TableProps) {
	const head = (name: string, title: string, number = true) => (
		<th className={number ? "number" : `of-${name}`} aria-sort={order === name ? "descending" : undefined}>
			<button type="button" onClick={() => setOrder(name)}>
				{title}
			</button>
		</th>
	);
	return (
		<table className="figures sessions">
			<thead>
				<tr>
					<th className="tick">
						<span className="said">Compare</span>
					</th>
					{head("id", "Session", false)}
					<th className="of-spark">Time in calls</th>
					<th>Worst finding</th>
					<th className="number of-sync" title="99th percentile of sync calls, within a power of two">
						Sync p99
					</th>
					<th className="of-device">Device</th>
					<th className="number of-exit">Exit</th>
					{head("when", "When", false)}
					{head("length", "Duration")}
					{head("calls", "Calls")}
					{head("lost", "Lost")}
					{head("size", "Size")}
				</tr>
			</thead>
			<tbody>
				{sessions.map((session) =>
					session.error ? (
						<Broken key={session.id} session={session} />
					) : (
						<Row key={session.id} session={session} chosen={chosen.includes(session.id)} choose={choose} />
					),
				)}
			</tbody>
		</table>
	);
}

interface RowProps {
	session: SessionSummary;
	chosen: boolean;
	choose: (id: string) => void;
}

function Row({ session, chosen, choose }: RowProps) {
	const open = { session: session.id, view: "overview", params: {} };
	const { row, glance } = useGlance(session.id, session.live);
	return (
		<tr
			ref={row}
			className="link"
			onClick={(event) => event.target instanceof Element && !event.target.closest("a, .tick") && store.go(open)}
		>
			<td className="tick">
				<input
					type="checkbox"
					aria-label={`Compare ${session.id}`}
					checked={chosen}
					onChange={() => choose(session.id)}
				/>
			</td>
			<td>
				<span className="session-name">
					<Link to={open}>
						<b>
							<Text of={session.id} />
						</b>
					</Link>
					{session.live ? (
						<span className="badge live">
							<span className="dot" />
							live
						</span>
					) : null}
					{session.source ? <span className="badge">{session.source}</span> : null}
				</span>
				<span className="mono quiet session-command cut">
					<Text of={session.command ?? session.target} className="cut" />
					{session.host ? <span className="faint"> on {visible(session.host)}</span> : null}
					{labelsOf(session).map((label) => (
						<span key={label} className="faint">
							{" "}
							<Text of={label} className="cut" />
						</span>
					))}
				</span>
			</td>
			<td className="of-spark">
				<Spark glance={glance} />
			</td>
			<td>
				<Worst glance={glance} />
			</td>
			<td className="number">
				<SyncTime glance={glance} />
			</td>
			<td className="quiet">
				<Text of={glance.data?.devices.join(", ") ?? ""} className="cut" />
			</td>
			<td className={session.exit_status ? "number warn" : "number faint"}>
				{session.killed ? "killed" : (session.exit_status ?? "–")}
			</td>
			<td className="quiet" title={wallTime(session.started_unix_ms)}>
				{ago(session.started_unix_ms, Date.now())}
			</td>
			<td className="number" title={session.duration_ns === null ? undefined : exactDuration(session.duration_ns)}>
				{session.duration_ns === null ? <span className="faint">–</span> : duration(session.duration_ns)}
			</td>
			<td className="number" title={`${exact(session.seen)} seen, ${exact(session.stored)} stored`}>
				{count(session.seen)}
			</td>
			<td className={session.lost > 0 ? "number warn" : "number faint"} title={counted(session.lost, "call")}>
				{session.lost > 0 ? count(session.lost) : "none"}
			</td>
			<td className="number" title={counted(session.bytes, "byte")}>
				{bytes(session.bytes)}
			</td>
		</tr>
	);
}

function Broken({ session }: { session: SessionSummary }) {
	const error = session.error;
	return (
		<tr>
			<td className="tick" />
			<td className="quiet">
				<Text of={session.id} />
			</td>
			<td colSpan={10} className="danger">
				<Text of={[error?.what, error?.subject, error?.next].filter(Boolean).join(" · ")} />
			</td>
		</tr>
	);
}
