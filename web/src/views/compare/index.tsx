// Two sessions, or groups of them, side by side: what differs by more than noise, and where.

import { useMemo } from "react";
import { type Change, type Comparison, compare, comparePath, type Figure } from "../../api/compare";
import { sessionPath } from "../../api/session";
import type { SessionSummary, Threads } from "../../api/types";
import { FlameCompared } from "../../components/flame/Compared";
import { Link } from "../../components/link";
import { Panel, Shown } from "../../components/panel";
import { Empty, sentence } from "../../components/states";
import { Text } from "../../components/text";
import { colorOf } from "../../lib/color";
import { counted, duration, visible } from "../../lib/format";
import { useResource } from "../../state/resource";
import { client } from "../../state/server";
import { store, usePage } from "../../state/store";
import { useTheme } from "../../state/theme";
import { leadOf, leadOfChange, type OfProcesses, placeOf, type Side as SideName, type Sides } from "./leads";
import { Curves, type Faults, useFaults } from "./plots";
import { filtersOfProcesses } from "./processes";
import { Side } from "./Sides";
import { Lead, Mark, Tables } from "./tables";
import {
	changed,
	changeText,
	impact,
	layerSentence,
	METRICS,
	movedCalls,
	precise,
	shown,
	slowOf,
	VERDICTS,
} from "./words";
import "./style.css";

function ids(text: string | undefined): string[] {
	return (text ?? "").split(",").filter((id) => id !== "");
}

export default function Compare() {
	const { params } = usePage();
	const theme = useTheme();
	const before = ids(params["before"]);
	const after = ids(params["after"]);
	const sessions = useResource("/sessions", (signal) => client.json<SessionSummary[]>("/sessions", signal));
	const list = sessions.data ?? [];
	const sides = { before: before[0] ?? "", after: after[0] ?? "" };
	const ready = before.length > 0 && after.length > 0;
	const answer = useResource(ready ? comparePath(before, after) : null, (signal) =>
		compare(client, before, after, signal),
	);
	const processes = useProcesses(answer.data, sides);
	const faults = useFaults(ready, sides);
	const set = (side: "before" | "after") => (chosen: string[]) =>
		store.go({ params: { [side]: chosen.join(",") || null } });
	const began = (of: string[]) => list.find((s) => s.id === of[0])?.started_unix_ms;
	const turned = (began(before) ?? 0) > (began(after) ?? Number.POSITIVE_INFINITY);
	const swap = () => store.go({ params: { before: after.join(",") || null, after: before.join(",") || null } });
	return (
		<div className="compare">
			<div className="compare-sides">
				<Side
					title="Before"
					color={colorOf("series", "before", theme)}
					chosen={before}
					sessions={list}
					choose={set("before")}
				/>
				<button type="button" className="button" title="The other way round" aria-label="Swap the sides" onClick={swap}>
					⇄
				</button>
				<Side
					title="After"
					color={colorOf("series", "after", theme)}
					chosen={after}
					sessions={list}
					choose={set("after")}
				/>
			</div>
			{turned ? (
				<p className="quiet">
					Before was recorded later than After: swap them (⇄) to read the changes in the order of time.
				</p>
			) : null}
			{ready ? (
				<>
					<Shown of={answer} height={120}>
						{(data) => <Outcome comparison={data} sides={sides} processes={processes} faults={faults} />}
					</Shown>
					<Curves
						before={before[0] ?? ""}
						after={after[0] ?? ""}
						syscalls={answer.data ? movedCalls(answer.data, 4).map((row) => row.name) : []}
					/>
					{answer.data ? (
						<>
							<Changes comparison={answer.data} sides={sides} processes={processes} />
							<FlameCompared before={before[0] ?? ""} after={after[0] ?? ""} />
							<Tables comparison={answer.data} sides={sides} processes={processes} />
							<Findings comparison={answer.data} />
						</>
					) : null}
				</>
			) : (
				<Empty title="Choose a session on each side">
					Several runs of the same on a side show how much figures differ from run to run: less is then taken for noise.
				</Empty>
			)}
		</div>
	);
}

/** The processes behind the names in a comparison, of the first session of each side. */
function useProcesses(comparison: Comparison | undefined, sides: Sides): OfProcesses {
	const asked = comparison !== undefined && comparison.tables.processes.length > 0;
	const filters = {
		before: useFilters(comparison, "before", asked ? sides.before : null),
		after: useFilters(comparison, "after", asked ? sides.after : null),
	};
	return (name, side) => filters[side]?.get(name) ?? null;
}

function useFilters(comparison: Comparison | undefined, side: SideName, id: string | null) {
	const path = id === null ? null : sessionPath(id, "/threads");
	const { data } = useResource(path, (signal) => client.json<Threads>(path ?? "", signal));
	return useMemo(
		() => (comparison && data ? filtersOfProcesses(comparison, side, data.threads) : undefined),
		[comparison, side, data],
	);
}

interface Of {
	comparison: Comparison;
	sides: Sides;
	processes: OfProcesses;
}

function Outcome({ comparison, sides, processes, faults }: Of & { faults: Faults | null }) {
	const [before, after] = comparison.headline.duration_ns;
	const layers = layerSentence(comparison);
	const several = comparison.before.sessions.length > 1 || comparison.after.sessions.length > 1;
	const total = (metric: Figure["metric"]) => comparison.totals.filter((figure) => figure.metric === metric);
	const calls = movedCalls(comparison, 3).flatMap((row) => {
		const slow = slowOf(row);
		return slow ? [{ ...slow, lead: leadOf("syscalls", row, processes) }] : [];
	});
	const others = comparison.totals.filter((figure) => figure.metric !== "time");
	return (
		<section className={`outcome ${comparison.outcome}`} aria-label="Outcome">
			<h2>
				<Text of={comparison.headline.text} />
			</h2>
			{layers ? (
				<p>
					<Text of={layers} />
				</p>
			) : null}
			<dl>
				<div title={`${precise("time", before)} → ${precise("time", after)}`}>
					<dt>Run time</dt>
					<dd>
						{duration(before)} → {duration(after)}{" "}
						<span className="compare-mark">
							{changed({ before, after, change: before > 0 ? after / before - 1 : null })}
						</span>
					</dd>
				</div>
				{total("time").map((figure) => (
					<Total key={figure.metric} name={METRICS[figure.metric]} figure={figure} />
				))}
				{faults ? (
					<div
						title={`${counted(faults.before.count, "page fault")} of mapped files before, ${counted(faults.after.count, "page fault")} after${several ? ", in the first session of each side" : ""}. They are no calls, so no figure of this comparison includes them. The overview of a session adds both.`}
					>
						<dt>Page faults, besides the calls</dt>
						<dd>
							{duration(faults.before.ns)} → {duration(faults.after.ns)}
						</dd>
					</div>
				) : null}
				{calls.map(({ name, figure, lead }) => (
					<Total key={name} name={visible(name)} figure={figure} to={lead ? placeOf(lead, sides) : undefined} />
				))}
			</dl>
			<details>
				<summary className="quiet">All totals, and how differences were judged</summary>
				<dl>
					{others.map((figure) => (
						<Total key={figure.metric} name={METRICS[figure.metric]} figure={figure} />
					))}
				</dl>
				{[...comparison.notes, ...comparison.method.text].map((text) => (
					<p key={text} className="quiet">
						{sentence(visible(text))}.
					</p>
				))}
			</details>
		</section>
	);
}

interface TotalProps {
	name: string;
	figure: Figure;
	/** The calls behind it. */
	to?: ReturnType<typeof placeOf> | undefined;
}

function Total({ name, figure, to }: TotalProps) {
	const values = `${shown(figure.metric, figure.before)} → ${shown(figure.metric, figure.after)}`;
	return (
		<div
			title={`${precise(figure.metric, figure.before)} → ${precise(figure.metric, figure.after)}: ${VERDICTS[figure.verdict]}${figure.why ? `, ${figure.why}` : ""}`}
		>
			<dt>{name}</dt>
			<dd>
				{to ? <Link to={to}>{values}</Link> : values} <Mark figure={figure} />
			</dd>
		</div>
	);
}

function Changes({ comparison, sides, processes }: Of) {
	const { changes, unproven } = comparison;
	const large = changes.filter((change) => !change.minor);
	const minor = changes.filter((change) => change.minor);
	return (
		<>
			<ChangeList
				title="Changes"
				note={`${large.length} beyond noise, the largest impact on time first`}
				changes={large}
				comparison={comparison}
				sides={sides}
				processes={processes}
			/>
			<ChangeList
				title="Large, but not provable with one run each"
				note="record more runs of each side to see whether they are noise"
				changes={unproven}
				comparison={comparison}
				sides={sides}
				processes={processes}
				proven={false}
			/>
			{minor.length > 0 ? (
				<details className="compare-minor">
					<summary className="quiet">
						{minor.length} {minor.length === 1 ? "change" : "changes"} below 0.1 % of the whole
					</summary>
					<ChangeList
						title="Small changes"
						note="beyond noise, but too small to matter"
						changes={minor}
						comparison={comparison}
						sides={sides}
						processes={processes}
					/>
				</details>
			) : null}
		</>
	);
}

interface ChangeListProps extends Of {
	title: string;
	note: string;
	changes: readonly Change[];
	/** Without a proof the sides' totals say less than the sentence, which counts per call. */
	proven?: boolean;
}

function ChangeList({ title, note, changes, comparison, sides, processes, proven = true }: ChangeListProps) {
	if (changes.length === 0) return null;
	return (
		<Panel title={title} note={note}>
			<ol className="changes">
				{changes.map((change) => (
					<li key={`${change.table} ${change.metric} ${change.subject}`} title={visible(change.why)}>
						{proven ? (
							<Mark figure={change} />
						) : (
							<span className="compare-mark">{(change.impact_ns ?? 0) > 0 ? "longer" : "shorter"}</span>
						)}
						<Lead lead={leadOfChange(comparison, change, processes)} sides={sides}>
							<Text of={changeText(change)} />
						</Lead>
						<span className="faint number">{impact(change)}</span>
					</li>
				))}
			</ol>
		</Panel>
	);
}

function Findings({ comparison }: { comparison: Comparison }) {
	const { findings } = comparison;
	return (
		<Panel title="Findings" note={`${findings.length} on either side`}>
			{findings.length === 0 ? (
				<Empty title="No findings on either side" />
			) : (
				<ul className="changes">
					{findings.map((finding) => (
						<li key={`${finding.rule} ${finding.subject}`} title={visible(finding.why)}>
							<span className={`compare-mark ${finding.verdict}`}>
								{finding.status === "both" ? VERDICTS[finding.verdict] : finding.status}
							</span>
							<span>
								<Text of={finding.title} /> <Text of={finding.subject} className="mono quiet" />
							</span>
							<span className="faint number">
								{finding.cost_ns.some((ns) => ns !== null)
									? `${cost(finding.cost_ns[0])} → ${cost(finding.cost_ns[1])}`
									: ""}
							</span>
						</li>
					))}
				</ul>
			)}
		</Panel>
	);
}

function cost(ns: number | null): string {
	return ns === null ? "–" : duration(ns);
}
