import type { ReactNode } from "react";
import type { Columns } from "../../api/arrow";
import { bytes, count, counted, duration, exact, exactDuration, percent } from "../../lib/format";
import { latencyOf } from "../../lib/latency";
import type { Resource } from "../../state/resource";
import { useSession, useShown } from "../../state/session";
import { useSlowest } from "../../state/slowest";
import { store } from "../../state/store";
import { tellsDirections } from "./totals";

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
	const width = span.to - span.from;
	const max = data ? data.f64("max_ns").reduce((a, b) => Math.max(a, Number.isFinite(b) ? b : 0), 0) : Number.NaN;
	const classes = data ? latencyOf(data) : [];
	// Syncs say how durable writes feel; without any, the kind with most time does.
	const shown = classes.find((c) => c.purpose === "sync") ?? classes[0];
	const failed = errors.data ? failures(errors.data) : null;
	return (
		<dl className="summary" aria-busy={data === undefined}>
			<Figure
				name="Time in calls"
				title={exactDuration(time)}
				more={`${(time / width).toFixed(1)} calls in progress on average`}
			>
				{duration(time)}
			</Figure>
			<Figure
				name="Longest call"
				title={`${exactDuration(max)}. Click: where its time went`}
				more={data && time > 0 ? `${percent(max / time)} of the time in calls` : ""}
				run={max > 0 ? () => slowest() : undefined}
			>
				{duration(max)}
			</Figure>
			<Figure
				name={shown ? `p99 of ${shown.purpose}` : "p99"}
				title={`One ${shown?.purpose ?? ""} call in a hundred took more; within a power of two`}
				more={shown?.halfTime ? `half of their time in calls > ${duration(shown.halfTime)}` : ""}
			>
				{shown?.p99 ? `≈ ${duration(shown.p99)}` : "–"}
			</Figure>
			<Figure
				name="Failed calls"
				title={
					failed
						? `${counted(failed.failed, "call")} failed; ${exact(failed.answers)} returned an error that is an answer, such as ENOENT of a look-up`
						: ""
				}
				more={failed?.answers ? `${count(failed.answers)} found nothing, or not yet` : ""}
				danger={(failed?.failed ?? 0) > 0}
				run={
					failed && failed.failed + failed.answers > 0
						? () => store.go({ view: "table", filter: { ...store.get().filter, error: "any" } })
						: undefined
				}
			>
				{failed ? count(failed.failed) : "–"}
			</Figure>
			<Figure name="Calls" title={counted(calls, "call")} more={`${count((calls / width) * 1e9)}/s`}>
				{count(calls)}
			</Figure>
			{told ? (
				<>
					<Figure name="Read" title={counted(read, "byte")} more={`${bytes((read / width) * 1e9)}/s`}>
						{bytes(read)}
					</Figure>
					<Figure name="Written" title={counted(written, "byte")} more={`${bytes((written / width) * 1e9)}/s`}>
						{bytes(written)}
					</Figure>
				</>
			) : (
				<Figure name="Read and written" title={counted(moved, "byte")} more={`${bytes((moved / width) * 1e9)}/s`}>
					{bytes(moved)}
				</Figure>
			)}
			<Figure
				name="Lost, whole session"
				title={`${counted(session.seen, "call")} seen, ${exact(session.stored)} stored, ${exact(session.lost)} lost`}
				more={session.lost > 0 ? `${percent(session.lost / session.seen)} of calls` : "every call is here"}
				danger={session.lost > 0}
			>
				{session.lost > 0 ? count(session.lost) : "0"}
			</Figure>
		</dl>
	);
}

function failures(errors: Columns): { failed: number; answers: number } {
	const calls = errors.f64("calls");
	const flags = errors.flags("failed");
	let failed = 0;
	let answers = 0;
	for (let i = 0; i < errors.rows; i += 1) {
		if (flags[i]) failed += calls[i] ?? 0;
		else answers += calls[i] ?? 0;
	}
	return { failed, answers };
}

interface FigureProps {
	name: string;
	title: string;
	more?: string;
	danger?: boolean;
	/** Where a click leads. */
	run?: (() => void) | undefined;
	children: ReactNode;
}

function Figure({ name, title, more, danger, run, children }: FigureProps) {
	return (
		<div title={title} className={run ? "leads" : undefined}>
			<dt>{name}</dt>
			<dd className={danger ? "danger" : undefined}>
				{run ? (
					<button type="button" onClick={run}>
						{children}
					</button>
				) : (
					children
				)}
			</dd>
			<dd className="more">{more}</dd>
		</div>
	);
}
