// One span: its trace, and the calls in it.

import { useMemo } from "react";
import type { Filter } from "../../api/types";
import { Link } from "../../components/link";
import { Panel, Shown } from "../../components/panel";
import { CallTable } from "../../components/request/CallTable";
import { Text } from "../../components/text";
import { count, duration, exactDuration } from "../../lib/format";
import { nameText } from "../../lib/spans";
import { useColumns, WHOLE } from "../../state/session";
import type { TimeWindow } from "../../state/url";
import { type Counting, callsOf, type Instance, membersOf, treeOf } from "./spans";

/** Room around a span in other views, as a share of it. */
const ROOM = 0.1;

export function OneSpan({ span, counting }: { span: Instance; counting: Counting }) {
	const trace = useColumns({ path: "questions/trace", params: { trace: span.trace }, ...WHOLE });
	const members = useMemo(() => (trace.data ? treeOf(membersOf(trace.data)) : []), [trace.data]);
	const answer = useColumns({
		path: "questions/span-calls",
		params: { counting, trace: span.trace, span: span.id },
		...WHOLE,
	});
	const calls = useMemo(() => (answer.data ? callsOf(answer.data) : []), [answer.data]);
	const total = answer.data?.f64("calls")[0] ?? 0;
	const filter: Filter = span.tid !== null ? { tid: [span.tid] } : span.pid !== null ? { pid: [span.pid] } : {};
	const window: TimeWindow = {
		kind: "range",
		from: Math.max(0, span.t - span.dur * ROOM),
		to: span.t + span.dur * (1 + ROOM),
	};
	const longest = calls.reduce<(typeof calls)[number] | null>((a, call) => (a && a.dur >= call.dur ? a : call), null);
	const begin = members.reduce((a, member) => Math.min(a, member.t), span.t);
	const end = members.reduce((a, member) => Math.max(a, member.t + member.dur), span.t + span.dur);
	const place = (t: number) => ((t - begin) / Math.max(1, end - begin)) * 100;
	return (
		<div className="spans-one">
			<Panel
				title="The span in its trace"
				note={span.tid === null ? "its thread is not known" : `thread ${span.tid}`}
				end={
					<>
						<Link className="button" to={{ view: "timeline", window, filter }} title="Its thread, at this time">
							Show in Timeline
						</Link>
						<Link
							className="button"
							to={{ view: "table", window, filter }}
							title="All calls of its thread, at this time"
						>
							Table
						</Link>
						{longest ? (
							<Link className="button" to={{ view: "request", rid: longest.rid }} title="The longest call in it">
								Longest call
							</Link>
						) : null}
					</>
				}
			>
				<Shown of={trace} height={60}>
					{() => (
						<ol className="spans-trace">
							{members.map((member) => (
								<li key={member.id} aria-current={member.id === span.id ? "true" : undefined}>
									<span className="cut" style={{ paddingLeft: `${Math.min(member.depth, 8) * 14}px` }}>
										<Text of={nameText(member)} />
									</span>
									<span className="spans-track">
										<span
											className={member.failed ? "failed" : undefined}
											title={`from ${exactDuration(member.t - begin)}, ${exactDuration(member.dur)}`}
											style={{
												left: `${place(member.t)}%`,
												width: `${Math.max(0.3, place(member.t + member.dur) - place(member.t))}%`,
											}}
										/>
									</span>
									<span className="number">{duration(member.dur)}</span>
								</li>
							))}
						</ol>
					)}
				</Shown>
			</Panel>
			<Panel
				title="Calls in the span"
				note={total > calls.length ? `the ${count(calls.length)} longest of ${count(total)}` : count(calls.length)}
			>
				<Shown
					of={answer}
					height={160}
					empty={(data) => data.rows === 0}
					emptyTitle="No recorded call"
					emptyText={
						span.pid === null
							? "The span does not say its process (resource attribute process.pid)."
							: "It made none, or several spans were open at once and it is not known whose calls they were."
					}
				>
					{() => (
						<div className="spans-calls">
							<CallTable
								calls={calls}
								since={span.t}
								more={
									counting === "all"
										? {
												title: "In",
												className: "quiet spans-in",
												of: (call) => <Text of={nameText({ name: call.span })} />,
											}
										: undefined
								}
							/>
						</div>
					)}
				</Shown>
			</Panel>
		</div>
	);
}
