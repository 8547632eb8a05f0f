// The hosts of a set: how their clocks are related, and which messages went between them.

import type { MemberSummary, Summary, Traffic } from "../../api/set";
import { Link } from "../../components/link";
import { Panel } from "../../components/panel";
import { Text } from "../../components/text";
import { bytes, count, duration, exact, exactDuration } from "../../lib/format";

export function Hosts({ set }: { set: Summary }) {
	return (
		<Panel title="Hosts" note="one clock for all: that of the first">
			<table className="figures fitted hosts">
				<thead>
					<tr>
						<th>Host</th>
						<th className="number">Calls</th>
						<th>Clock</th>
						<th className="number" title="The largest possible error of a time while any session lasts">
							Error
						</th>
						<th className="number" title="The same between the first and the last message">
							Between messages
						</th>
						<th className="number" title="By how much the clock goes slower than the first one's, parts per million">
							Rate
						</th>
						<th>Session</th>
					</tr>
				</thead>
				<tbody>
					{set.members.map((member) => (
						<tr key={member.host}>
							<td>
								<Link to={{ session: member.host, view: "overview", params: {} }}>
									<Text of={member.host} />
								</Link>
							</td>
							<td className="number" title={exact(member.calls)}>
								{count(member.calls)}
							</td>
							<td>
								<Text of={member.relation} />
								{member.note ? (
									<div className="faint">
										<Text of={member.note} />
									</div>
								) : null}
							</td>
							<td className="number">{errorOf(member, member.error_ns)}</td>
							<td className="number">{errorOf(member, member.error_in_messages_ns)}</td>
							<td className="number quiet">{hasOwnClock(member) ? member.rate_ppm.toFixed(3) : "–"}</td>
							<td className="mono quiet">
								<Text of={member.session} />
							</td>
						</tr>
					))}
				</tbody>
			</table>
			{set.traffic.length > 0 ? <TrafficTable traffic={set.traffic} /> : null}
		</Panel>
	);
}

export function TrafficTable({ traffic }: { traffic: readonly Traffic[] }) {
	const noted = traffic.some((of) => of.before_sent > 0);
	return (
		<table className="figures fitted hosts">
			<thead>
				<tr>
					<th>From</th>
					<th>To</th>
					<th className="number">Messages</th>
					<th className="number">Bytes</th>
					<th
						className="number"
						title="Shortest time from the start of a send to the end of the receive; off by at most the errors of both clocks"
					>
						Fastest
					</th>
					{noted ? <th>Note</th> : null}
				</tr>
			</thead>
			<tbody>
				{traffic.map((of) => (
					<tr key={`${of.from}\n${of.to}`}>
						<td>
							<Text of={of.from} />
						</td>
						<td>
							<Text of={of.to} />
						</td>
						<td className="number" title={exact(of.messages)}>
							{count(of.messages)}
						</td>
						<td className="number">{bytes(of.bytes)}</td>
						<td className="number" title={exactDuration(of.fastest_ns)}>
							{duration(of.fastest_ns)}
						</td>
						{noted ? (
							<td className="faint">
								{of.before_sent === 0
									? null
									: `${exact(of.before_sent)} arrived before they were sent: the clocks are not yet related well enough`}
							</td>
						) : null}
					</tr>
				))}
			</tbody>
		</table>
	);
}

function hasOwnClock(member: MemberSummary): boolean {
	return member.clock === "messages" || member.clock === "wall-clock";
}

function errorOf(member: MemberSummary, error: number | null): string {
	if (!hasOwnClock(member)) return "none";
	return error === null ? "unknown" : `±${duration(error)}`;
}
