// Spans of an application: which of its requests took long, how much of that was I/O, and which calls it was.

import { useEffect, useMemo, useState } from "react";
import { Legend } from "../../components/legend";
import { Panel, Shown } from "../../components/panel";
import { Segmented } from "../../components/segmented";
import { Empty } from "../../components/states";
import { Text } from "../../components/text";
import { bytes, count, counted, duration, exact, exactDuration } from "../../lib/format";
import { type Name, nameKey, nameOf, nameText } from "../../lib/spans";
import { hasRows } from "../../lib/tables";
import { useColumns, useSession } from "../../state/session";
import { store, useParam, useRestedPage } from "../../state/store";
import { useTheme } from "../../state/theme";
import { LayerBar, layerEntries } from "./bar";
import { OneSpan } from "./one";
import {
	type Counting,
	type Inside,
	type Instance,
	instancesOf,
	type Named,
	namesOf,
	type SpanId,
	slowestOf,
} from "./spans";
import "./style.css";

/** Names that are shown. */
const NAMES = 200;
/** The slowest spans of a name. */
const SLOWEST = 50;

const COUNTINGS: readonly (readonly [Counting, string])[] = [
	["all", "with inner spans"],
	["own", "innermost only"],
];

export default function Spans() {
	const { about } = useSession();
	if (!hasRows(about, "spans")) {
		return (
			<Empty title="No spans">
				Spans are the requests of an application. <code>fathom record --spans all</code> finds them on its sockets. If
				it traces them itself with OpenTelemetry, add them to a closed session:{" "}
				<code>fathom import --into {about.id} spans.jsonl</code>
			</Empty>
		);
	}
	return <Names />;
}

function Names() {
	const theme = useTheme();
	const [param, setCounting] = useParam("calls", "all");
	const counting: Counting = param === "own" ? "own" : "all";
	const { params } = useRestedPage();
	const answer = useColumns({ path: "questions/spans", params: { counting }, filtered: false });
	const names = useMemo(() => (answer.data ? namesOf(answer.data) : []), [answer.data]);
	const asked = params["name"] === undefined ? null : nameOf(params["name"]);
	const chosen = asked ?? names[0] ?? null;
	return (
		<div className="spans">
			<Panel
				title="Spans by name"
				note="requests of the application that began in this window, whatever the filter"
				head={<Legend entries={layerEntries(names, theme)} />}
				end={<Segmented label="Calls of a span" value={counting} options={COUNTINGS} onChange={setCounting} />}
			>
				<Shown of={answer} height={140} empty={(data) => data.rows === 0} emptyTitle="No span began in this window">
					{() => <NameTable names={names} chosen={chosen} />}
				</Shown>
			</Panel>
			{chosen ? <Slowest name={chosen} counting={counting} /> : null}
		</div>
	);
}

function NameTable({ names, chosen }: { names: readonly Named[]; chosen: Name | null }) {
	const current = chosen === null ? "" : nameKey(chosen);
	const most = names.reduce((a, name) => Math.max(a, name.total || 0, name.time), 1);
	const several = names.some((name) => name.service !== names[0]?.service);
	const choose = (name: Named) => store.go({ params: { name: nameKey(name), trace: null, span: null } });
	return (
		<>
			<div className="spans-names">
				<table className="figures">
					<thead>
						<tr>
							<th>Name</th>
							<th className="number few">Spans</th>
							<th className="number few">Failed</th>
							<th className="number">p50</th>
							<th className="number">p99</th>
							<th className="number">Total</th>
							<th className="spans-where">Where the time went</th>
							<InsideHeads />
						</tr>
					</thead>
					<tbody>
						{names.slice(0, NAMES).map((name) => (
							<tr
								key={nameKey(name)}
								className="link"
								aria-current={nameKey(name) === current ? "true" : undefined}
								title={`${nameText(name)}, ${name.kind}, of service ${name.service ?? "without a name"}. Click: its slowest spans`}
								onClick={() => choose(name)}
							>
								<td>
									<button type="button" className="plain-name">
										<Text of={nameText(name)} />
									</button>{" "}
									<span className="faint">
										{several ? <Text of={name.service ?? "no service"} /> : null}{" "}
										{name.kind === "unspecified" ? "" : name.kind}
									</span>
								</td>
								<td className="number" title={exact(name.spans)}>
									{count(name.spans)}
								</td>
								<td
									className={name.errors > 0 ? "number danger" : "number faint"}
									title={`${exact(name.errors)} failed`}
								>
									{count(name.errors)}
								</td>
								<td className="number" title={exactDuration(name.p50)}>
									{duration(name.p50)}
								</td>
								<td className="number" title={`${exactDuration(name.p99)}; the longest ${exactDuration(name.max)}`}>
									{duration(name.p99)}
								</td>
								<td className="number" title={exactDuration(name.total)}>
									{duration(name.total)}
								</td>
								<td className="spans-where">
									<LayerBar inside={name} total={name.total} length={Math.max(name.total || 0, name.time) / most} />
								</td>
								<InsideCells inside={name} />
							</tr>
						))}
					</tbody>
				</table>
			</div>
			{names.length > NAMES ? (
				<p className="spans-said faint">
					{NAMES} of {count(names.length)} names are shown, those with the most time.
				</p>
			) : null}
		</>
	);
}

function InsideHeads() {
	return (
		<>
			<th className="number" title="Sum of the durations of the recorded calls">
				In calls
			</th>
			<th className="number few">Calls</th>
			<th className="number" title="Bytes that the calls moved">
				Bytes
			</th>
			<th className="number" title="Bytes that devices moved for the calls, also after their ends">
				Devices
			</th>
		</>
	);
}

function InsideCells({ inside }: { inside: Inside }) {
	return (
		<>
			<td className="number" title={exactDuration(inside.time)}>
				{duration(inside.time)}
			</td>
			<td className="number" title={exact(inside.calls)}>
				{count(inside.calls)}
			</td>
			<td className="number" title={counted(inside.bytes, "byte")}>
				{bytes(inside.bytes)}
			</td>
			<td className="number" title={counted(inside.deviceBytes, "byte")}>
				{bytes(inside.deviceBytes)}
			</td>
		</>
	);
}

/** The slowest spans of a name, and one of them. */
function Slowest({ name, counting }: { name: Name; counting: Counting }) {
	const { params } = useRestedPage();
	const [trace, id] = [params["trace"], params["span"]];
	const asked = trace !== undefined && id !== undefined ? { trace, id } : null;
	// The question stays the same while one of the slowest is chosen, so that the list stays, too.
	const [outside, setOutside] = useState<SpanId | null>(asked);
	const answer = useColumns({
		path: "questions/slowest-spans",
		params: slowestOf(name, counting, outside),
		filtered: false,
	});
	const spans = useMemo(() => (answer.data ? instancesOf(answer.data) : []), [answer.data]);
	const of = (span: Instance) => span.trace === trace && span.id === id;
	const missing = asked !== null && answer.data !== undefined && !answer.stale && !spans.some(of);
	const known = outside?.trace === trace && outside?.id === id;
	useEffect(() => {
		if (missing && !known && trace !== undefined && id !== undefined) setOutside({ trace, id });
	}, [missing, known, trace, id]);
	const chosen = answer.stale ? null : (spans.find(of) ?? spans[0] ?? null);
	const longest = spans.reduce((a, span) => Math.max(a, span.dur, span.time), 1);
	return (
		<div className="spans-columns">
			<Panel
				title={`Slowest: ${nameText(name)}`}
				note={spans.length === SLOWEST ? `the ${SLOWEST} longest` : count(spans.length)}
			>
				<Shown of={answer} height={200} empty={(data) => data.rows === 0} emptyTitle="None began in this window">
					{() => (
						<div className="spans-slowest">
							<table className="figures">
								<thead>
									<tr>
										<th className="number">Start</th>
										<th className="number">Duration</th>
										<th className="spans-where">Where the time went</th>
										<th className="number">In calls</th>
										<th className="number few">Calls</th>
										<th className="number">Bytes</th>
									</tr>
								</thead>
								<tbody>
									{spans.map((span) => (
										<tr
											key={`${span.trace} ${span.id}`}
											className="link"
											aria-current={span === chosen ? "true" : undefined}
											title={span.failed ? `failed${span.message ? `: ${span.message}` : ""}` : undefined}
											onClick={() => store.go({ params: { name: nameKey(name), trace: span.trace, span: span.id } })}
										>
											<td className="number quiet" title={exactDuration(span.t)}>
												{duration(span.t)}
											</td>
											<td className={span.failed ? "number danger" : "number"} title={exactDuration(span.dur)}>
												<button type="button" className="plain-name">
													{duration(span.dur)}
												</button>
											</td>
											<td className="spans-where">
												<LayerBar inside={span} total={span.dur} length={Math.max(span.dur, span.time) / longest} />
											</td>
											<td className="number" title={exactDuration(span.time)}>
												{duration(span.time)}
											</td>
											<td className="number">{count(span.calls)}</td>
											<td className="number" title={counted(span.bytes, "byte")}>
												{bytes(span.bytes)}
											</td>
										</tr>
									))}
								</tbody>
							</table>
						</div>
					)}
				</Shown>
			</Panel>
			{chosen ? <OneSpan span={chosen} counting={counting} /> : null}
		</div>
	);
}
