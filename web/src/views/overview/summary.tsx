import type { ReactNode } from "react";
import type { Columns } from "../../api/arrow";
import { gridOf, heatOf } from "../../lib/buckets";
import { bytes, count, duration, exact, exactDuration, percent } from "../../lib/format";
import { quantile } from "../../lib/scale";
import type { Resource } from "../../state/resource";
import { useSession, useShown } from "../../state/session";
import { tellsDirections } from "./totals";

/** The figures of the window, in one line. */
export function Summary({ totals }: { totals: Resource<Columns> }) {
	const { span } = useShown();
	const session = useSession();
	const data = totals.data;
	const told = !data || tellsDirections(data);
	const sum = (name: string) =>
		data ? data.f64(name).reduce((a, b) => a + (Number.isFinite(b) ? b : 0), 0) : Number.NaN;
	const calls = sum("calls");
	const errors = sum("errors");
	const read = sum("bytes_read");
	const written = sum("bytes_written");
	const moved = sum("bytes");
	const time = sum("time_ns");
	const width = span.to - span.from;
	let p50: number | null = null;
	let p99: number | null = null;
	if (data) {
		const heat = heatOf(data, gridOf(data));
		const whole = new Float64Array(heat.low + heat.rows);
		heat.counts.forEach((n, i) => {
			const row = heat.low + (heat.rows > 0 ? i % heat.rows : 0);
			whole[row] = (whole[row] ?? 0) + n;
		});
		p50 = quantile(whole, 0.5);
		p99 = quantile(whole, 0.99);
	}
	const max = data ? data.f64("max_ns").reduce((a, b) => Math.max(a, Number.isFinite(b) ? b : 0), 0) : Number.NaN;
	return (
		<dl className="summary" aria-busy={data === undefined}>
			<Figure name="Calls" title={`${exact(calls)} calls`} more={`${count((calls / width) * 1e9)}/s`}>
				{count(calls)}
			</Figure>
			<Figure
				name="Errors"
				title={`${exact(errors)} calls failed`}
				more={calls > 0 ? percent(errors / calls) : ""}
				danger={errors > 0}
			>
				{count(errors)}
			</Figure>
			{told ? (
				<>
					<Figure name="Read" title={`${exact(read)} bytes`} more={`${bytes((read / width) * 1e9)}/s`}>
						{bytes(read)}
					</Figure>
					<Figure name="Written" title={`${exact(written)} bytes`} more={`${bytes((written / width) * 1e9)}/s`}>
						{bytes(written)}
					</Figure>
				</>
			) : (
				<Figure name="Read and written" title={`${exact(moved)} bytes`} more={`${bytes((moved / width) * 1e9)}/s`}>
					{bytes(moved)}
				</Figure>
			)}
			<Figure name="Time in calls" title={exactDuration(time)} more={`${percent(time / width)} of one thread`}>
				{duration(time)}
			</Figure>
			<Figure name="Latency p50" title="Half of the calls took less; within a power of two">
				{p50 === null ? "–" : `≈ ${duration(p50)}`}
			</Figure>
			<Figure
				name="Latency p99"
				title="One call in a hundred took more; within a power of two"
				more={data ? `longest ${duration(max)}` : ""}
			>
				{p99 === null ? "–" : `≈ ${duration(p99)}`}
			</Figure>
			<Figure
				name="Lost, whole session"
				title={`${exact(session.seen)} calls seen, ${exact(session.stored)} stored, ${exact(session.lost)} lost`}
				more={session.lost > 0 ? `${percent(session.lost / session.seen)} of calls` : "every call is here"}
				danger={session.lost > 0}
			>
				{session.lost > 0 ? count(session.lost) : "0"}
			</Figure>
		</dl>
	);
}

interface FigureProps {
	name: string;
	title: string;
	more?: string;
	danger?: boolean;
	children: ReactNode;
}

function Figure({ name, title, more, danger, children }: FigureProps) {
	return (
		<div title={title}>
			<dt>{name}</dt>
			<dd className={danger ? "danger" : undefined}>{children}</dd>
			<dd className="more">{more}</dd>
		</div>
	);
}
