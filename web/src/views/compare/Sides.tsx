// Which sessions are compared: one or several on each side.

import type { SessionSummary } from "../../api/types";
import { Link } from "../../components/link";
import { Swatch, Text } from "../../components/text";
import { ago, count, duration, visible, wallTime } from "../../lib/format";

interface Props {
	title: string;
	color: string;
	chosen: readonly string[];
	sessions: readonly SessionSummary[];
	choose: (ids: string[]) => void;
}

export function Side({ title, color, chosen, sessions, choose }: Props) {
	const free = sessions.filter((s) => !chosen.includes(s.id) && s.error === null);
	return (
		<section className="side" aria-label={title}>
			<h2>
				<Swatch color={color} /> {title}
			</h2>
			<ul>
				{chosen.map((id) => {
					const session = sessions.find((s) => s.id === id);
					return (
						<li key={id}>
							<Link to={{ session: id, view: "overview", params: {} }} title="Open it">
								<b>
									<Text of={id} />
								</b>
							</Link>
							{session ? (
								<span className="quiet cut">
									<Text of={session.command ?? session.target} className="mono" />
								</span>
							) : (
								<span className="danger">not in this directory</span>
							)}
							{session ? (
								<span className="faint side-facts">
									<span title={wallTime(session.started_unix_ms)}>{ago(session.started_unix_ms, Date.now())}</span>:{" "}
									{count(session.seen)} calls
									{session.duration_ns === null ? "" : ` in ${duration(session.duration_ns)}`}
								</span>
							) : null}
							<button
								type="button"
								className="button plain"
								aria-label={`Without ${visible(id)}`}
								onClick={() => choose(chosen.filter((c) => c !== id))}
							>
								×
							</button>
						</li>
					);
				})}
			</ul>
			<select
				className="field"
				aria-label={`${title}: add a session`}
				value=""
				disabled={free.length === 0}
				onChange={(event) => event.target.value && choose([...chosen, event.target.value])}
			>
				<option value="">{chosen.length === 0 ? "Choose a session" : "Add a session"}</option>
				{free.map((s) => (
					<option key={s.id} value={s.id}>
						{visible(s.id)}: {visible(s.command ?? s.target).slice(0, 60)}
					</option>
				))}
			</select>
		</section>
	);
}
