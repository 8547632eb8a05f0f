// Sums of the sessions that are served: by command, host, day, finding, tenant, volume, or device, and over the days.

import type { FleetAnswer, FleetGroup } from "../../api/types";
import { Link } from "../../components/link";
import { Shown } from "../../components/panel";
import { Text } from "../../components/text";
import { bytes, count, duration, exact, exactDuration } from "../../lib/format";
import { useResource } from "../../state/resource";
import { client } from "../../state/server";
import { type Days, type Key, keyOf, overDays, TITLES } from "./keys";

const WIDTH = 168;
const HEIGHT = 30;

/** Sums by `by`. `again` changes when the list of sessions does. `narrow` shows the sessions of a group. */
export function Sums({ by, again, narrow }: { by: Key; again: string; narrow: (value: string) => void }) {
	const path = `/fleet?by=${by}`;
	const sums = useResource(path, (signal) => client.json<FleetAnswer>(path, signal), again);
	const daily = by === "day" ? path : `/fleet?by=day,${by}&top=0`;
	const days = useResource(daily, (signal) => client.json<FleetAnswer>(daily, signal), again);
	return (
		<Shown
			of={{ ...sums, loading: sums.loading && sums.data === undefined }}
			height={200}
			empty={(answer) => answer.groups.length === 0}
			emptyTitle={`No session has a ${by}`}
			emptyText={<NotesOf notes={sums.data?.notes ?? []} />}
		>
			{(answer) => (
				<>
					<Groups
						by={by}
						groups={answer.groups}
						days={days.data ? overDays(days.data.groups, by) : undefined}
						narrow={narrow}
					/>
					<NotesOf notes={answer.notes} />
				</>
			)}
		</Shown>
	);
}

function NotesOf({ notes }: { notes: readonly string[] }) {
	if (notes.length === 0) return null;
	return (
		<div className="sums-notes quiet">
			{notes.map((note) => (
				<div key={note}>
					<Text of={note} />
				</div>
			))}
		</div>
	);
}

interface GroupsProps {
	by: Key;
	groups: readonly FleetGroup[];
	days: Days | undefined;
	narrow: (value: string) => void;
}

function Groups({ by, groups, days, narrow }: GroupsProps) {
	const most = groups.reduce((top, group) => Math.max(top, group.time_ns), 0);
	// A single day is no line.
	const overTime = by !== "day" && (days?.days.length ?? 0) > 1;
	return (
		<table className="figures sums">
			<thead>
				<tr>
					<th className="of-key">{TITLES[by]}</th>
					{overTime ? (
						<th className="of-spark" title="Time on each day, UTC; each line has its own scale">
							{`${days?.days[0]} to ${days?.days.at(-1)}`}
						</th>
					) : null}
					<th className="number">Sessions</th>
					<th className="number">Hosts</th>
					<th className="number">Findings</th>
					<th className="number">{by === "device" ? "Requests" : "Calls"}</th>
					<th className="number">Bytes</th>
					<th className="number" title={by === "finding" ? "What the findings cost" : "Sum of the durations of calls"}>
						Time
					</th>
					<th className="of-share">
						<span className="said">Share</span>
					</th>
					<th className="of-most">Session with most</th>
				</tr>
			</thead>
			<tbody>
				{groups.map((group) => {
					const value = keyOf(group, by);
					return (
						<tr key={value}>
							<td>
								<Value by={by} value={value} narrow={narrow} />
							</td>
							{overTime ? (
								<td className="of-spark">
									<Line days={days?.days ?? []} times={days?.times.get(value) ?? []} />
								</td>
							) : null}
							<td className="number of-sessions">{exact(group.sessions)}</td>
							<td className="number">{exact(group.hosts)}</td>
							<td className={group.findings ? "number warn" : "number faint"}>{group.findings ?? "–"}</td>
							<td className="number" title={group.calls === null ? undefined : exact(group.calls)}>
								{group.calls === null ? "–" : count(group.calls)}
							</td>
							<td className="number">{group.bytes === null ? "–" : bytes(group.bytes)}</td>
							<td className="number" title={exactDuration(group.time_ns)}>
								{duration(group.time_ns)}
							</td>
							<td className="of-share">
								<span className="bar" style={{ width: `${most > 0 ? (100 * group.time_ns) / most : 0}%` }} />
							</td>
							<td>
								<Link to={{ session: group.session, view: by === "device" ? "devices" : "overview", params: {} }}>
									<Text of={group.session} className="cut" />
								</Link>
							</td>
						</tr>
					);
				})}
			</tbody>
		</table>
	);
}

/** The value; sessions can be filtered by a command, and by nothing else of these. */
function Value({ by, value, narrow }: { by: Key; value: string; narrow: (value: string) => void }) {
	if (value === "") return <span className="faint">unknown</span>;
	if (by !== "command") return <Text of={value} className="cut" />;
	return (
		<button type="button" className="button plain mono cut" title="Show these sessions" onClick={() => narrow(value)}>
			<Text of={value} className="cut" />
		</button>
	);
}

function Line({ days, times }: { days: readonly string[]; times: readonly number[] }) {
	const top = times.reduce((a, b) => Math.max(a, b), 0);
	if (top === 0) return <span className="spark" />;
	const at = times.indexOf(top);
	const wide = WIDTH / days.length;
	return (
		<svg className="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img">
			<title>{`most on ${days[at]}: ${duration(top)}`}</title>
			{times.map((time, i) =>
				time > 0 ? (
					<rect
						key={days[i]}
						x={i * wide}
						width={Math.max(1, Math.min(wide - 0.5, 24))}
						y={HEIGHT - (time / top) * HEIGHT}
						height={(time / top) * HEIGHT}
					/>
				) : null,
			)}
		</svg>
	);
}
