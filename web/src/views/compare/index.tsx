// Two sessions, or groups of them, side by side: what differs by more than noise, and where.

import { type Change, type Comparison, compare, comparePath } from "../../api/compare";
import type { SessionSummary } from "../../api/types";
import { Panel, Shown } from "../../components/panel";
import { Empty, sentence } from "../../components/states";
import { Text } from "../../components/text";
import { colorOf } from "../../lib/color";
import { duration, visible } from "../../lib/format";
import { useResource } from "../../state/resource";
import { client } from "../../state/server";
import { store, usePage } from "../../state/store";
import { useTheme } from "../../state/theme";
import { Curves } from "./plots";
import { Side } from "./Sides";
import { Mark, Tables } from "./tables";
import { changeText, impact, METRICS, precise, shown, VERDICTS } from "./words";
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
	const ready = before.length > 0 && after.length > 0;
	const answer = useResource(ready ? comparePath(before, after) : null, (signal) =>
		compare(client, before, after, signal),
	);
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
						{(data) => <Outcome comparison={data} />}
					</Shown>
					<Curves before={before[0] ?? ""} after={after[0] ?? ""} />
					{answer.data ? (
						<>
							<Changes comparison={answer.data} />
							<Tables comparison={answer.data} />
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

function Outcome({ comparison }: { comparison: Comparison }) {
	return (
		<section className={`outcome ${comparison.outcome}`} aria-label="Outcome">
			<h2>
				<Text of={comparison.headline.text} />
			</h2>
			<dl>
				{comparison.totals.map((figure) => (
					<div
						key={figure.metric}
						title={`${precise(figure.metric, figure.before)} → ${precise(figure.metric, figure.after)}: ${VERDICTS[figure.verdict]}${figure.why ? `, ${figure.why}` : ""}`}
					>
						<dt>{METRICS[figure.metric] ?? figure.metric}</dt>
						<dd>
							{shown(figure.metric, figure.before)} → {shown(figure.metric, figure.after)} <Mark figure={figure} />
						</dd>
					</div>
				))}
			</dl>
			{[...comparison.notes, ...comparison.method.text].map((text) => (
				<p key={text} className="quiet">
					{sentence(visible(text))}.
				</p>
			))}
		</section>
	);
}

function Changes({ comparison }: { comparison: Comparison }) {
	const { changes, unproven } = comparison;
	const large = changes.filter((change) => !change.minor);
	const minor = changes.filter((change) => change.minor);
	return (
		<>
			<ChangeList
				title="Changes"
				note={`${large.length} beyond noise, the largest impact on time first`}
				changes={large}
			/>
			<ChangeList
				title="Large, but not proven"
				note="more runs on each side would show whether they are noise"
				changes={unproven}
			/>
			<ChangeList title="Small changes" note={`${minor.length} beyond noise`} changes={minor} />
		</>
	);
}

function ChangeList({ title, note, changes }: { title: string; note: string; changes: readonly Change[] }) {
	if (changes.length === 0) return null;
	return (
		<Panel title={title} note={note}>
			<ol className="changes">
				{changes.map((change) => (
					<li key={`${change.table} ${change.metric} ${change.subject}`} title={visible(change.why)}>
						<Mark figure={change} />
						<Text of={changeText(change)} />
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
