// What the rules have found in the whole session, each with its evidence and the calls that show it.

import { useEffect, useRef } from "react";
import type { Diagnosis, Finding, Site } from "../../api/diagnosis";
import type { Filter } from "../../api/types";
import { Link } from "../../components/link";
import { Panel, Shown } from "../../components/panel";
import { sentence } from "../../components/states";
import { Text } from "../../components/text";
import { duration, exact, exactTime, visible } from "../../lib/format";
import type { Resource } from "../../state/resource";
import { useSession } from "../../state/session";
import { useParam } from "../../state/store";
import { evidenceOf } from "./evidence";
import { byReason, unseenText } from "./unseen";

/** Findings that stand open; the others follow behind a click. */
const FIRST = 3;

export function Findings({ diagnosis }: { diagnosis: Resource<Diagnosis> }) {
	const session = useSession();
	const count = diagnosis.data?.findings.length;
	return (
		<Panel
			title="Findings"
			className="findings"
			note={
				count === undefined
					? "reading every call of the session"
					: `${count} in the whole session; ${diagnosis.data?.rules} rules checked`
			}
		>
			<Shown
				of={diagnosis}
				height={122}
				empty={(data) => data.calls === 0}
				emptyTitle="No calls"
				emptyText="There is nothing to check."
			>
				{(data) => (
					<div className="findings-list">
						{data.findings.length === 0 ? <p className="quiet">No known problem found ({data.rules} rules).</p> : null}
						{data.findings.slice(0, FIRST).map((finding, i, shown) => (
							<Entry key={i} finding={finding} start={session.about.started_at_ns} of={shown.length} />
						))}
						{data.findings.length > FIRST ? (
							<details>
								<summary className="quiet">
									{exact(data.findings.length - FIRST)} more, in the order of their cost
								</summary>
								{data.findings.slice(FIRST).map((finding, i) => (
									<Entry key={i} finding={finding} start={session.about.started_at_ns} />
								))}
								{data.more.map((more) => (
									<p key={more.rule} className="quiet findings-more">
										{exact(more.findings)} more of rule {more.rule}
									</p>
								))}
							</details>
						) : null}
						{data.minor.length ? (
							<details>
								<summary className="quiet">
									{data.minor.length === 1
										? "1 minor note, which costs less than a finding"
										: `${exact(data.minor.length)} minor notes, each of which costs less than a finding`}
								</summary>
								{data.minor.map((finding, i) => (
									<Entry key={i} finding={finding} start={session.about.started_at_ns} />
								))}
							</details>
						) : null}
						<CouldNotLook diagnosis={data} />
					</div>
				)}
			</Shown>
		</Panel>
	);
}

/** The rules whose data were not recorded, with what to record for them. */
function CouldNotLook({ diagnosis }: { diagnosis: Diagnosis }) {
	const text = unseenText(diagnosis);
	if (!text) return null;
	return (
		<details>
			<summary className="quiet">{text}</summary>
			{byReason([...diagnosis.not_observable, ...diagnosis.partly_observable]).map(({ rules, reason }) => (
				<p key={reason} className="quiet findings-more">
					{rules.join(", ")}: {visible(reason)}
				</p>
			))}
		</details>
	);
}

interface EntryProps {
	finding: Finding;
	start: number;
	/** So many stand open together: where they leave room, the advice is in sight. */
	of?: number;
}

function Entry({ finding, start, of = FIRST }: EntryProps) {
	const filter = filterOf(finding);
	const [rule] = useParam("finding", "");
	const entry = useRef<HTMLDetailsElement>(null);
	const meant = rule === finding.rule;
	useEffect(() => {
		const element = entry.current;
		if (!meant || !element) return;
		for (let at: Element | null = element; at; at = at.parentElement)
			if (at instanceof HTMLDetailsElement) at.open = true;
		element.scrollIntoView({ block: "center" });
	}, [meant]);
	return (
		<details className="finding" ref={entry}>
			<summary>
				<span className={`severity ${finding.severity}`}>{sentence(finding.severity)}</span>
				<span className="finding-title">{visible(finding.title)}</span>
				<span className="number quiet" title={finding.cost_how}>
					{finding.cost_ns === null ? "" : `costs ${duration(finding.cost_ns)}`}
				</span>
				{of < FIRST ? (
					<span className="finding-advice quiet" style={{ WebkitLineClamp: of === 1 ? 3 : 1 }}>
						{visible(finding.advice)}
					</span>
				) : null}
			</summary>
			<div className="finding-body">
				<p>{visible(finding.advice)}</p>
				{finding.caveats.map((caveat) => (
					<p key={caveat} className="quiet">
						{visible(caveat)}
					</p>
				))}
				<p className="quiet">{evidenceOf(finding.rule, finding.evidence)}</p>
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
						<Link className="button" to={{ filter }} title="Show only the calls that this is about">
							Filter by its subject
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
