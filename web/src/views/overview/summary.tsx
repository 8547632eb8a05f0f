import { type ReactNode, useMemo } from "react";
import type { Columns } from "../../api/arrow";
import type { Purpose } from "../../api/calls";
import { isThere } from "../../components/saved";
import { bytes, count, counted, duration, exact, exactDuration, inProgress, percent } from "../../lib/format";
import { latencyOf } from "../../lib/latency";
import type { Resource } from "../../state/resource";
import { archive } from "../../state/server";
import { useSession, useShown } from "../../state/session";
import { useSlowest } from "../../state/slowest";
import { store } from "../../state/store";
import { answersText, errorsOf } from "./errors";
import { tellsDirections } from "./totals";

/** Where figures lead; a saved page may not have it, and has no answers to filters and other orders. */
const FLAME = { view: "flame" };
const REQUEST = { view: "request" };
const TABLE = { view: "table" };

interface Props {
	totals: Resource<Columns>;
	errors: Resource<Columns>;
}

/** The figures of the window, in one line. */
export function Summary({ totals, errors }: Props) {
	const { span } = useShown();
	const session = useSession();
	const slowest = useSlowest();
	const data = totals.data;
	const told = !data || tellsDirections(data);
	const sum = (name: string) =>
		data ? data.f64(name).reduce((a, b) => a + (Number.isFinite(b) ? b : 0), 0) : Number.NaN;
	const calls = sum("calls");
	const read = sum("bytes_read");
	const written = sum("bytes_written");
	const moved = sum("bytes");
	const time = sum("time_ns");
	const faults = data?.has("faults") ? sum("faults") : 0;
	const inFaults = faults > 0 ? sum("fault_ns") : 0;
	const width = span.to - span.from;
	// Of calls that last beyond the window only the part in it is in progress there.
	const covered = data ? (data.metaNumber("to") ?? span.to) - (data.metaNumber("from") ?? span.from) : width;
	const average = inProgress(sum("busy_ns") / covered);
	const max = data ? data.f64("max_ns").reduce((a, b) => Math.max(a, Number.isFinite(b) ? b : 0), 0) : Number.NaN;
	const classes = useMemo(() => (data ? latencyOf(data) : []), [data]);
	// Syncs say how durable writes feel; without any, the kind with most time does.
	const shown = classes.find((c) => c.purpose === "sync") ?? classes[0];
	// The page's first sums have no latencies.
	const coming = data?.has("latency") === false;
	const failed = errors.data ? errorsOf(errors.data) : null;
	return (
		<dl className="summary" aria-busy={data === undefined || coming}>
			<Figure
				name={faults > 0 ? "Time in calls + faults" : "Time in calls"}
				title={`${exactDuration(time)} in calls${faults > 0 ? `, ${exactDuration(inFaults)} in ${counted(faults, "page fault")} of mapped files` : ""}${isThere(FLAME) ? ". Click: by file and call, as a flame graph" : ""}`}
				run={calls + faults > 0 && isThere(FLAME) ? () => store.go(FLAME) : undefined}
				more={faults > 0 ? `${duration(inFaults)} in page faults` : `${average} calls in progress on average`}
			>
				{duration(time + inFaults)}
			</Figure>
			<Figure
				name="Longest call"
				title={`${exactDuration(max)}. Click: where its time went`}
				more={data && time > 0 ? `${percent(max / time)} of the time in calls` : ""}
				run={max > 0 && isThere(REQUEST) ? () => (archive === null ? slowest() : store.go(REQUEST)) : undefined}
			>
				{duration(max)}
			</Figure>
			<Figure
				name={shown ? `p99 of ${shown.purpose}` : "p99"}
				title={`One ${shown?.purpose ?? ""} call in a hundred took more; p99 to within a factor of 2. Click: their latencies over time`}
				coming={coming}
				run={shown && !coming ? () => toLatency(shown.purpose) : undefined}
				more={shown?.halfTime ? `half of their time in calls > ${duration(shown.halfTime)}` : ""}
			>
				{shown?.p99 ? `≈ ${duration(shown.p99)}` : "–"}
			</Figure>
			<Figure
				name="Failed calls"
				title={
					failed
						? `${counted(failed.failed, "call")} failed; ${counted(failed.answers, "expected error", "expected errors")}: ${exact(failed.missing)} of look-ups of missing files, ${exact(failed.answers - failed.missing)} of others, such as EAGAIN`
						: ""
				}
				more={failed ? answersText(failed) : ""}
				danger={(failed?.failed ?? 0) > 0}
				run={
					failed && failed.failed + failed.answers > 0 && archive === null
						? () => store.go({ view: "table", filter: { ...store.get().filter, error: "any" } })
						: undefined
				}
			>
				{failed ? count(failed.failed) : "–"}
			</Figure>
			<Figure
				name="Calls"
				title={`${counted(calls, "call")}. Click: all of them in a table`}
				more={`${count((calls / width) * 1e9)}/s`}
				run={calls > 0 && isThere(TABLE) ? () => store.go(TABLE) : undefined}
			>
				{count(calls)}
			</Figure>
			{told ? (
				<>
					<Figure
						name="Read"
						title={`${counted(read, "byte")}. Click: the files with the most bytes`}
						more={`${bytes((read / width) * 1e9)}/s`}
						run={read > 0 && archive === null ? byBytes : undefined}
					>
						{bytes(read)}
					</Figure>
					<Figure
						name="Written"
						title={`${counted(written, "byte")}. Click: the files with the most bytes`}
						more={`${bytes((written / width) * 1e9)}/s`}
						run={written > 0 && archive === null ? byBytes : undefined}
					>
						{bytes(written)}
					</Figure>
				</>
			) : (
				<Figure
					name="Read and written"
					title={`${counted(moved, "byte")}. Click: the files with the most bytes`}
					more={`${bytes((moved / width) * 1e9)}/s`}
					run={moved > 0 && archive === null ? byBytes : undefined}
				>
					{bytes(moved)}
				</Figure>
			)}
			<Figure
				name="Lost, whole session"
				title={`${counted(session.seen, "call")} seen, ${exact(session.stored)} stored, ${exact(session.lost)} lost`}
				more={session.lost > 0 ? `${percent(session.lost / session.seen)} of calls` : "every call is here"}
				danger={session.lost > 0}
				run={session.lost > 0 ? () => scrollTo("Missing data") : undefined}
			>
				{session.lost > 0 ? count(session.lost) : "0"}
			</Figure>
		</dl>
	);
}

const byBytes = () => store.go({ view: "file", params: { order: "bytes" } });

/** The panel of latencies, with the calls of one kind. */
function toLatency(purpose: Purpose): void {
	store.go({ params: { latency: purpose } }, "replace");
	scrollTo("Latency");
}

function scrollTo(panel: string): void {
	document.querySelector(`section.panel[aria-label="${panel}"]`)?.scrollIntoView({ block: "start" });
}

interface FigureProps {
	name: string;
	title: string;
	more?: string;
	danger?: boolean;
	/** It is still to come. */
	coming?: boolean;
	/** Where a click leads. */
	run?: (() => void) | undefined;
	children: ReactNode;
}

function Figure({ name, title, more, danger, coming, run, children }: FigureProps) {
	return (
		<div title={title} className={run ? "leads" : undefined}>
			<dt>{name}</dt>
			<dd className={coming ? "not-loaded" : danger ? "danger" : undefined}>
				{coming ? (
					"\u00a0"
				) : run ? (
					<button type="button" onClick={run}>
						{children}
					</button>
				) : (
					children
				)}
			</dd>
			<dd className="more">{coming ? "\u00a0" : more}</dd>
		</div>
	);
}
