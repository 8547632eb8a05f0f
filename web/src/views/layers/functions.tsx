import { useMemo } from "react";
import { Link } from "../../components/link";
import { Panel, Shown } from "../../components/panel";
import { FunctionName } from "../../components/request/LibraryCall";
import { type FunctionSums, functionSql, functionsOf } from "../../components/request/library";
import { colorOf } from "../../lib/color";
import { bytes, count, duration, exact, exactDuration, percent } from "../../lib/format";
import { has, useAccess } from "../../state/access";
import { archive } from "../../state/server";
import { useColumns, WHOLE } from "../../state/session";
import { useTheme } from "../../state/theme";

const UNKNOWN = "Unknown: some of its calls were counted and have no row (--library-budget)";

function callsTitle(f: FunctionSums): string {
	if (f.counted > 0) return `${exact(f.calls)}, ${exact(f.counted)} of them counted, without a row (--library-budget)`;
	return `${exact(f.calls)}, ${exact(f.failed ?? 0)} of them failed`;
}

function Time({ of, more = "" }: { of: number | null; more?: string }) {
	return (
		<td className="number" title={of === null ? UNKNOWN : exactDuration(of) + more}>
			{of === null ? "" : duration(of)}
		</td>
	);
}

/** The functions of libraries whose calls were recorded, with the system calls that they made. */
export function Functions() {
	const theme = useTheme();
	const linked = has(useAccess(), "query");
	const answer = useColumns({ path: "questions/library-functions", ...WHOLE });
	const functions = useMemo(() => (answer.data ? functionsOf(answer.data) : []), [answer.data]);
	// A session that was exported as a page has no answer to this.
	if (archive && answer.error) return null;
	const most = functions.reduce((a, f) => Math.max(a, f.time ?? 0), 1);
	return (
		<Panel
			title="Library calls"
			note="by function, in the whole recording, whatever window and filter; times of nested functions overlap"
		>
			<Shown of={answer} height={120} empty={(data) => data.rows === 0} emptyTitle="No library call was recorded">
				{() => (
					<div className="layers-functions">
						<table className="figures">
							<thead>
								<tr>
									<th>Function</th>
									<th className="number">Calls</th>
									<th className="number">p50</th>
									<th className="number">p99</th>
									<th className="number">Time</th>
									<th className="number" title="Time in the system calls that the function made itself, and its share">
										In system calls
									</th>
									<th className="number">System calls</th>
									<th className="number" title="Bytes that the program asked the function for">
										Requested
									</th>
									<th className="number" title="Bytes that the system calls moved">
										Moved
									</th>
								</tr>
							</thead>
							<tbody>
								{functions.map((f) => (
									<tr key={`${f.name} ${f.library}`}>
										<td>
											<span
												className="bar"
												style={{
													width: `calc(${((f.time ?? 0) / most) * 100}% - 10px)`,
													background: colorOf("layer", "user", theme),
												}}
											/>
											{linked ? (
												<Link
													to={{ view: "sql", params: { sql: functionSql(f), name: `System calls of ${f.name}` } }}
													title="The longest system calls that it made"
												>
													<FunctionName name={f.name} library={f.library} />
												</Link>
											) : (
												<FunctionName name={f.name} library={f.library} />
											)}
										</td>
										<td className="number" title={callsTitle(f)}>
											{count(f.calls)}
										</td>
										<Time of={f.p50} />
										<Time of={f.p99} more={f.max === null ? "" : `; the longest ${exactDuration(f.max)}`} />
										<Time of={f.time} />
										<td className="number" title={f.syscallTime === null ? UNKNOWN : exactDuration(f.syscallTime)}>
											{f.syscalls && f.time ? (
												<>
													{duration(f.syscallTime ?? 0)}{" "}
													<span className="faint">{percent(Math.min(1, (f.syscallTime ?? 0) / f.time))}</span>
												</>
											) : (
												""
											)}
										</td>
										<td className="number" title={f.syscalls === null ? UNKNOWN : exact(f.syscalls)}>
											{f.syscalls ? count(f.syscalls) : ""}
										</td>
										<td className="number">{f.size === null ? "" : bytes(f.size)}</td>
										<td className="number">{f.syscallBytes ? bytes(f.syscallBytes) : ""}</td>
									</tr>
								))}
							</tbody>
						</table>
					</div>
				)}
			</Shown>
		</Panel>
	);
}
