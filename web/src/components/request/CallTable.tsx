import type { ReactNode } from "react";
import { colorOf } from "../../lib/color";
import { bytes, counted, duration, exactDuration } from "../../lib/format";
import { useTheme } from "../../state/theme";
import { Link } from "../link";
import { Path, Swatch } from "../text";

/** A system call in a table of those that belong together. */
export interface CallRow {
	rid: number;
	/** Since the start of the session. */
	t: number;
	dur: number;
	syscall: string;
	errno?: string | null;
	bytes: number;
	path: string | null;
}

interface Props<T extends CallRow> {
	calls: readonly T[];
	/** The time that starts are shown from. */
	since: number;
	/** The call that is open. */
	current?: number;
	/** One more column before the path. */
	more?: { title: string; className: string; of: (call: T) => ReactNode } | undefined;
}

/** System calls that belong together, in order, each with a link to its request. */
export function CallTable<T extends CallRow>({ calls, since, current, more }: Props<T>) {
	const theme = useTheme();
	return (
		<table className="figures fitted neighbors">
			<thead>
				<tr>
					<th className="number">Start</th>
					<th>Call</th>
					<th className="number">Duration</th>
					<th className="number">Bytes</th>
					{more ? <th>{more.title}</th> : null}
					<th>Path</th>
				</tr>
			</thead>
			<tbody>
				{calls.map((call) => (
					<tr key={call.rid} aria-current={call.rid === current ? "true" : undefined}>
						<td className="number quiet" title={exactDuration(call.t - since)}>
							+{duration(call.t - since)}
						</td>
						<td>
							<Swatch color={colorOf("syscall", call.syscall, theme)} />{" "}
							{call.rid === current ? (
								<b>{call.syscall}</b>
							) : (
								<Link to={{ view: "request", rid: call.rid }} title="Where its time went">
									{call.syscall}
								</Link>
							)}
							{call.errno ? <span className="faint"> {call.errno}</span> : null}
						</td>
						<td className="number" title={exactDuration(call.dur)}>
							{duration(call.dur)}
						</td>
						<td className="number" title={counted(call.bytes, "byte")}>
							{call.bytes > 0 ? bytes(call.bytes) : ""}
						</td>
						{more ? <td className={more.className}>{more.of(call)}</td> : null}
						<td>
							<Path of={call.path} />
						</td>
					</tr>
				))}
			</tbody>
		</table>
	);
}
