// How the calls in a box of the latency plot differ from the other calls of the window.

import type { DifferenceAnswer } from "../../api/types";
import { Link } from "../../components/link";
import { Shown } from "../../components/panel";
import { Text } from "../../components/text";
import { mergeFilters } from "../../lib/filters";
import { bytes, count, duration, exact, percent, shortPath, time } from "../../lib/format";
import { useJson } from "../../state/session";
import { store, useRestedPage } from "../../state/store";

type Dimension = DifferenceAnswer["dimensions"][number];
type Share = Dimension["values"][number];

const TITLES: Readonly<Record<string, string>> = {
	syscall: "Call",
	file: "File",
	thread: "Thread",
	size: "Bytes",
	error: "Error",
	layer: "Time in layer",
};

/** Values that differ by less are no difference. */
const LEAST = 0.01;
const ROWS = 5;

export interface Box {
	begin: number;
	end: number;
	least: number;
	most: number;
}

/** A box as it stands in an address; null for what is none. */
export function boxOf(text: string): Box | null {
	const [begin, end, least, most] = text.split(",").map(Number);
	const numbers = [begin, end, least, most];
	if (!numbers.every((n) => n !== undefined && Number.isFinite(n))) return null;
	const box = { begin: begin ?? 0, end: end ?? 0, least: least ?? 0, most: most ?? 0 };
	return box.begin < box.end && box.least < box.most ? box : null;
}

export function Difference() {
	const text = useRestedPage().params["box"] ?? "";
	const box = boxOf(text);
	return box ? <Answer box={box} /> : null;
}

function Answer({ box }: { box: Box }) {
	const { filter } = useRestedPage();
	const answer = useJson<DifferenceAnswer>({ path: "difference", params: { ...box } });
	const close = () => store.go({ params: { box: null } });
	const only = {
		filter: mergeFilters(filter, { dur: [box.least, box.most] }),
		window: { kind: "range" as const, from: box.begin, to: box.end },
	};
	return (
		<section className="difference" aria-label="How the calls in the box differ">
			<header>
				<h3>
					Calls of {duration(box.least)} to {duration(box.most)}, from {time(box.begin, (box.end - box.begin) / 100)} to{" "}
					{time(box.end, (box.end - box.begin) / 100)}
				</h3>
				<div className="end">
					<Link className="button" to={{ view: "table", ...only, params: { sort: "-dur_ns" } }}>
						List them
					</Link>
					<button type="button" className="button plain" onClick={close} aria-label="Close">
						×
					</button>
				</div>
			</header>
			<Shown
				of={answer}
				height={150}
				empty={(data) => data.inside.calls === 0}
				emptyTitle="No calls in this box"
				emptyText="Drag another one."
			>
				{(data) => (
					<>
						<p>
							<b>{count(data.inside.calls)}</b> calls took <b>{duration(data.inside.time_ns)}</b>,{" "}
							{percent(data.inside.time_ns / (data.inside.time_ns + data.outside.time_ns))} of the time in calls.{" "}
							{headline(data)}
						</p>
						<div className="difference-tables">
							{data.dimensions.map((dimension) => (
								<Table key={dimension.name} dimension={dimension} />
							))}
						</div>
						<p className="finding-links">
							Longest:{" "}
							{data.examples.map((call) => (
								<Link
									key={call.rid}
									className="button"
									to={{ view: "request", rid: call.rid }}
									title={`at ${time(call.t, 1e6)}, ${call.path ?? "no file"}`}
								>
									<Text of={call.syscall} /> <span className="quiet">{duration(call.dur_ns)}</span>
								</Link>
							))}
						</p>
					</>
				)}
			</Shown>
		</section>
	);
}

/** The differences that stand out most, as a sentence. */
export function headline(data: DifferenceAnswer): string {
	const parts = data.dimensions
		.map((dimension) => ({ dimension, value: dimension.values.find((v) => v.inside > v.outside) }))
		.filter((p): p is { dimension: Dimension; value: Share } => p.value !== undefined)
		.filter((p) => p.value.inside - p.value.outside >= 0.2)
		.sort((a, b) => b.value.inside - b.value.outside - (a.value.inside - a.value.outside))
		.slice(0, 3)
		.map(({ dimension, value }) => {
			const name = nameOf(dimension.name, value);
			const what = dimension.name === "layer" ? `time in ${name}` : name;
			return `${what} (${percent(value.inside)}, elsewhere ${percent(value.outside)})`;
		});
	return parts.length === 0 ? "They are made up like all other calls." : `They differ by ${parts.join(", ")}.`;
}

function nameOf(dimension: string, value: Share): string {
	if (value.key === null) {
		if (dimension === "file") return "calls without a file";
		if (dimension === "error") return "no error";
		return dimension === "size" ? "no bytes" : "none";
	}
	if (dimension === "size") return `${bytes(Number(value.key))} or more`;
	if (dimension === "file") return shortPath(value.label ?? value.key, 34);
	return dimension === "thread" ? `${value.label ?? ""} ${value.key}` : (value.label ?? value.key);
}

function Table({ dimension }: { dimension: Dimension }) {
	const values = dimension.values.filter((v) => Math.abs(v.inside - v.outside) >= LEAST).slice(0, ROWS);
	if (values.length === 0) return null;
	return (
		<table className="figures">
			<thead>
				<tr>
					<th>{TITLES[dimension.name] ?? dimension.name}</th>
					<th className="number">In the box</th>
					<th className="number">Elsewhere</th>
				</tr>
			</thead>
			<tbody>
				{values.map((value) => (
					<tr key={value.key ?? "none"} title={value.label ?? undefined}>
						<td>
							<span className="pair" aria-hidden="true">
								<span className="inside" style={{ width: `${value.inside * 100}%` }} />
								<span className="outside" style={{ width: `${value.outside * 100}%` }} />
							</span>
							<Text of={nameOf(dimension.name, value)} className="cut" />
						</td>
						<td className="number" title={exact(value.inside)}>
							{percent(value.inside)}
						</td>
						<td className="number">{percent(value.outside)}</td>
					</tr>
				))}
			</tbody>
		</table>
	);
}
