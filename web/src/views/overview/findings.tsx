// What the rules have found in the whole session, each with its evidence and the calls that show it.

import type { Diagnosis, Finding, Site } from "../../api/diagnosis";
import { sessionPath } from "../../api/session";
import type { Filter } from "../../api/types";
import { Link } from "../../app/Link";
import { Panel, Shown } from "../../components/panel";
import { sentence } from "../../components/states";
import { Text } from "../../components/text";
import { duration, exact, exactTime, visible } from "../../lib/format";
import { useResource } from "../../state/resource";
import { client } from "../../state/server";
import { useSession } from "../../state/session";
import { evidenceText } from "./evidence";

/** A diagnosis reads every call: of a running recording it is made anew this often. */
const AGAIN_NS = 10e9;

/** `after`: what takes less time has come, so that nothing waits for a diagnosis. */
export function Findings({ after }: { after: boolean }) {
	const session = useSession();
	const path = sessionPath(session.id, "/findings");
	const turn = session.live ? Math.floor(session.bounds.to / AGAIN_NS) : -1;
	const findings = useResource(after ? path : null, (signal) => client.json<Diagnosis>(path, signal), turn);
	const count = findings.data?.findings.length;
	return (
		<Panel
			title="Findings"
			note={
				count === undefined
					? "looking at every call of the session"
					: `${count} in the whole session, by ${findings.data?.rules} rules`
			}
		>
			<Shown
				of={findings}
				height={60}
				empty={(data) => data.calls === 0}
				emptyTitle="No calls"
				emptyText="There is nothing for the rules to look at."
			>
				{(data) => (
					<div className="findings-list">
						<p className="findings-summary">{visible(data.summary.sentences.join(" "))}</p>
						{data.findings.length === 0 ? (
							<p className="quiet">No findings: none of the known patterns of slow or faulty I/O is in this session.</p>
						) : null}
						{data.findings.map((finding, i) => (
							<Entry key={i} finding={finding} start={session.about.started_at_ns} />
						))}
						{data.more.map((more) => (
							<p key={more.rule} className="quiet findings-more">
								and {exact(more.findings)} more of rule {more.rule}
							</p>
						))}
						{data.minor.length ? (
							<details>
								<summary className="quiet">
									Minor notes: {exact(data.minor.length)}, each costs less than a finding does
								</summary>
								{data.minor.map((finding, i) => (
									<Entry key={i} finding={finding} start={session.about.started_at_ns} />
								))}
							</details>
						) : null}
					</div>
				)}
			</Shown>
		</Panel>
	);
}

function Entry({ finding, start }: { finding: Finding; start: number }) {
	const filter = filterOf(finding);
	return (
		<details className="finding">
			<summary>
				<span className={`severity ${finding.severity}`}>{sentence(finding.severity)}</span>
				<span className="finding-title">{visible(finding.title)}</span>
				<span className="number quiet" title={finding.cost_how}>
					{finding.cost_ns === null ? "" : `costs ${duration(finding.cost_ns)}`}
				</span>
			</summary>
			<div className="finding-body">
				<p>{visible(finding.advice)}</p>
				{finding.caveats.map((caveat) => (
					<p key={caveat} className="quiet">
						{visible(caveat)}
					</p>
				))}
				<p className="quiet">{finding.evidence.map(evidenceText).join(" · ")}</p>
				{finding.also.length ? (
					<p className="quiet">Also seen as: {[...new Set(finding.also.map((also) => also.rule))].join(", ")}</p>
				) : null}
				{finding.code?.length ? (
					<p>
						In the code:{" "}
						{finding.code.map((site, i) => (
							<span key={i}>
								{i > 0 ? ", " : ""}
								<Text of={siteText(site)} className="mono" />
							</span>
						))}
					</p>
				) : null}
				<div className="finding-links">
					{filter ? (
						<Link className="button" to={{ filter }} title="Show only what this is about">
							Filter by it
						</Link>
					) : null}
					{finding.examples.map((example) => (
						<Link
							key={example.rid}
							className="button"
							to={{ view: "request", rid: example.rid }}
							title={`${exactTime(example.ts_ns - start)}, ${visible(example.path ?? "")}`}
						>
							{example.syscall} <span className="quiet">{duration(example.dur_ns)}</span>
						</Link>
					))}
					<span className="faint">
						rule {finding.rule}, confidence {finding.confidence}
						{finding.subject.path ? (
							<>
								{" · "}
								<Text of={finding.subject.path} className="mono" />
							</>
						) : null}
					</span>
				</div>
			</div>
		</details>
	);
}

/** A place in a program: its line where that is known, else how far behind the function's beginning. */
function siteText(site: Site): string {
	const name = site.function ?? "";
	if (site.source !== undefined) return `${name}${name ? " at " : ""}${site.source}${site.line ? `:${site.line}` : ""}`;
	const object = site.object ?? "code of no file";
	if (!name) return `${object}+0x${(site.offset ?? 0).toString(16)}`;
	return site.function_offset === undefined
		? `${name} in ${object}`
		: `${name}+0x${site.function_offset.toString(16)} in ${object}`;
}

/** What a finding is about, as a filter. */
function filterOf({ subject }: Finding): Filter | null {
	const filter: Filter = {};
	if (subject.file_id !== undefined) filter.file = [subject.file_id];
	else if (subject.path !== undefined) filter.path = subject.path;
	if (subject.tid !== undefined) filter.tid = [subject.tid];
	else if (subject.pid !== undefined) filter.pid = [subject.pid];
	return Object.keys(filter).length > 0 ? filter : null;
}
