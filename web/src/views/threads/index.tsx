// Time in calls by the name of threads, and the latency above: which threads hold up which.

import { useMemo } from "react";
import { Legend } from "../../components/legend";
import { bucketOf, onward, showCalls, showProgress, stackAt } from "../../components/onward";
import { Panel, Shown } from "../../components/panel";
import type { Pointed } from "../../components/plotframe";
import { Segmented } from "../../components/segmented";
import { Text } from "../../components/text";
import { type PlotSeries, TimeChart } from "../../components/timechart";
import { useTall } from "../../components/useTall";
import { type Grid, gridOf, perSecond } from "../../lib/buckets";
import { colorOf, type Theme } from "../../lib/color";
import { count, duration, exact, exactDuration, inProgress, visible } from "../../lib/format";
import { useColumns, useShown } from "../../state/session";
import { toggleFilter, usePage, useParam } from "../../state/store";
import { token, useTheme } from "../../state/theme";
import { byName, coarser, fold, type Named, p99OfAll } from "./names";
import "./style.css";

const BUCKETS = 400;
/** Percentiles need more calls than a narrow bucket has. */
const PERCENTILES = 80;
/** Threads that are told apart before they are summed up by name. */
const THREADS = 200;
const COLORED = 12;
const LANES = 24;

type Metric = "busy" | "calls";

const METRICS: readonly (readonly [Metric, string])[] = [
	["busy", "time in calls"],
	["calls", "calls/s"],
];

const LABELS: Readonly<Record<Metric, string>> = { busy: "Calls in progress", calls: "Calls per second" };

const LEADS: Readonly<Record<Metric, string>> = { busy: "Timeline of this time", calls: "calls of this time" };

type Form = "stack" | "lanes";

const FORMS: readonly (readonly [Form, string])[] = [
	["stack", "stacked"],
	["lanes", "a lane each"],
];

/** Whose p99 is drawn besides that of all: few enough to be told apart. */
const LINES = 4;

export default function Threads() {
	const { span } = useShown();
	const upper = useTall(190, 0.22);
	const lower = useTall(300, 0.36);
	const theme = useTheme();
	const [param, setForm] = useParam("as", "stack");
	const form: Form = param === "lanes" ? "lanes" : "stack";
	const [metricParam, setMetric] = useParam("metric", "busy");
	const metric: Metric = metricParam === "calls" ? "calls" : "busy";
	const [marked, setMarked] = useParam("name", "");
	const tiles = useColumns({
		path: "tiles",
		params: { by: "thread", top: THREADS, latency: 1, busy: 1 },
		pixels: BUCKETS,
	});
	const made = useMemo(() => {
		if (!tiles.data) return null;
		const grid = gridOf(tiles.data);
		const wide = coarser(grid, PERCENTILES);
		const names = byName(tiles.data, grid, wide.step);
		return {
			grid,
			wide: wide.grid,
			names,
			folded: fold(names, COLORED),
			lanes: fold(names, LANES),
			all: p99OfAll(tiles.data, grid, wide.step),
		};
	}, [tiles.data]);
	const mark = (name: string) => setMarked(name === marked ? "" : name);
	return (
		<div className="threads">
			<Panel
				title="Latency, p99"
				note="p99 to within a factor of 2, including unfinished calls"
				head={
					made ? (
						<Legend entries={latencyLines(made, marked, theme).map((s) => ({ label: s.label, color: s.color }))} />
					) : undefined
				}
				picture="threads-p99"
			>
				<Shown of={tiles} height={upper} empty={(data) => data.rows === 0}>
					{() =>
						made && (
							<TimeChart
								label="99th percentile of latency over time"
								span={span}
								t={made.wide.t}
								bucket={made.wide.bucket}
								series={latencyLines(made, marked, theme)}
								height={upper}
								log
								{...onward("calls of this time, the slowest first", ({ index }) => {
									const time = bucketOf(made.wide, index);
									if (time) showCalls(time);
								})}
								format={duration}
							/>
						)
					}
				</Shown>
			</Panel>
			<Panel
				title="Time in calls by thread name"
				note={metric === "busy" ? "calls in progress, on average" : "calls that begin, per second"}
				head={made && form === "stack" ? <Legend entries={entries(made.folded, theme)} /> : undefined}
				end={
					<>
						<Segmented label="Metric" value={metric} options={METRICS} onChange={setMetric} />
						<Segmented label="Form" value={form} options={FORMS} onChange={setForm} />
					</>
				}
				picture="threads-calls"
			>
				<Shown of={tiles} height={form === "stack" ? lower : 0} empty={(data) => data.rows === 0}>
					{() =>
						made &&
						(form === "stack" ? (
							<TimeChart
								label={`${LABELS[metric]} over time, by thread name`}
								span={span}
								t={made.grid.t}
								bucket={made.grid.bucket}
								series={stacks(inOrder(made.folded, marked), made.grid, metric, theme)}
								height={lower}
								{...onward(LEADS[metric], (at) => pick(inOrder(made.folded, marked), made.grid, metric, at))}
								format={metric === "busy" ? inProgress : count}
								exact={metric === "busy" ? inProgress : (v) => `${exact(Math.round(v))}/s`}
							/>
						) : (
							<Lanes made={made} metric={metric} />
						))
					}
				</Shown>
			</Panel>
			<Panel title="Names" note="Click a name to highlight it">
				<Shown of={tiles} height={120} empty={(data) => data.rows === 0}>
					{() => made && <Names names={made.names} marked={marked} mark={mark} />}
				</Shown>
			</Panel>
		</div>
	);
}

interface Made {
	grid: Grid;
	/** Of the percentiles. */
	wide: Grid;
	names: Named[];
	folded: Named[];
	lanes: Named[];
	all: Float64Array;
}

function nameOf(named: Named): string {
	if (named.name === null) return "all others";
	const name = visible(named.name);
	return named.threads > 1 ? `${name} × ${named.threads}` : name;
}

function color(named: Named, theme: Theme): string {
	return colorOf("comm", named.name, theme);
}

function entries(names: readonly Named[], theme: Theme) {
	return names.map((n) => ({
		label: nameOf(n),
		color: color(n, theme),
		...(n.name === null ? {} : { onPick: ({ alt }: { alt: boolean }) => toggleFilter("comm", n.name ?? "", alt) }),
	}));
}

function valuesOf(named: Named, grid: Grid, metric: Metric): Float64Array {
	return metric === "busy" ? named.busy.map((v) => v / grid.bucket) : perSecond(named.calls, grid.bucket);
}

/** The marked one lies at the bottom, where its course can be read off. */
function inOrder(names: readonly Named[], marked: string): Named[] {
	return [...names].sort((a, b) => Number(b.name === marked) - Number(a.name === marked));
}

/** From a bucket to what its threads did: calls that are in progress may have begun before it. */
function pick(names: readonly Named[], grid: Grid, metric: Metric, at: Pointed): void {
	const time = bucketOf(grid, at.index);
	if (!time) return;
	const name =
		names[
			stackAt(
				names.map((n) => valuesOf(n, grid, metric)),
				at,
			)
		]?.name ?? null;
	const filter = name === null ? {} : { comm: [name] };
	if (metric === "busy") showProgress(time, filter);
	else showCalls(time, filter);
}

function stacks(names: readonly Named[], grid: Grid, metric: Metric, theme: Theme): PlotSeries[] {
	return names.map((n) => ({
		label: nameOf(n),
		color: color(n, theme),
		values: valuesOf(n, grid, metric),
		style: "stack",
	}));
}

/** The lines above: of all calls, and of the names with the most calls or the marked one. */
function latencyLines(made: Made, marked: string, theme: Theme): PlotSeries[] {
	const chosen = made.names
		.filter((n) => n.name !== null && (marked === "" ? true : n.name === marked))
		.slice(0, LINES);
	const lines: PlotSeries[] = chosen.map((n) => ({
		label: visible(n.name ?? ""),
		color: color(n, theme),
		values: n.p99,
		style: "line",
	}));
	if (made.names.length === 1) return lines;
	return [...lines, { label: "all calls", color: token("--ink"), values: made.all, style: "line" }];
}

const LANE = 40;

/** A small plot for each name below each other, each with its own scale: phases and gaps side by side. */
function Lanes({ made, metric }: { made: Made; metric: Metric }) {
	const { span } = useShown();
	const theme = useTheme();
	return (
		<div className="thread-lanes">
			{made.lanes.map((n, i) => {
				const last = i === made.lanes.length - 1;
				return (
					<div className="thread-lane" key={n.name ?? "\0rest"}>
						<div className="thread-lane-name">
							<Text of={nameOf(n)} className="cut" />
						</div>
						<TimeChart
							label={`${LABELS[metric]} of ${nameOf(n)} over time`}
							span={span}
							t={made.grid.t}
							bucket={made.grid.bucket}
							series={[
								{
									label: nameOf(n),
									color: color(n, theme),
									values: valuesOf(n, made.grid, metric),
									style: "area",
								},
							]}
							height={last ? LANE + 24 : LANE}
							times={last}
							{...onward(LEADS[metric], (at) => pick([n], made.grid, metric, at))}
							format={metric === "busy" ? inProgress : count}
							exact={metric === "busy" ? inProgress : (v) => `${exact(Math.round(v))}/s`}
						/>
					</div>
				);
			})}
		</div>
	);
}

function Names({ names, marked, mark }: { names: readonly Named[]; marked: string; mark: (name: string) => void }) {
	const theme = useTheme();
	const { filter } = usePage();
	return (
		<div className="threads-names">
			<table className="figures">
				<thead>
					<tr>
						<th>Name</th>
						<th className="number">Threads</th>
						<th className="number">Calls</th>
						<th className="number">Time</th>
						<th className="number">Errors</th>
						<th className="number">p99</th>
						<th className="number">Filter</th>
					</tr>
				</thead>
				<tbody>
					{names.map((n) => (
						<tr
							key={n.name ?? "\0rest"}
							className={n.name === null ? undefined : "link"}
							aria-selected={n.name !== null && n.name === marked}
							onClick={() => n.name !== null && mark(n.name)}
						>
							<td>
								<span className="swatch" style={{ background: color(n, theme) }} />{" "}
								{n.name === null ? (
									<span className="quiet">all others</span>
								) : (
									<button type="button" className="plain-name" aria-pressed={n.name === marked}>
										<Text of={n.name} />
									</button>
								)}
							</td>
							<td className="number">{n.threads > 0 ? exact(n.threads) : ""}</td>
							<td className="number" title={exact(n.total)}>
								{count(n.total)}
							</td>
							<td className="number" title={exactDuration(n.time)}>
								{duration(n.time)}
							</td>
							<td className="number faint">{count(n.errors)}</td>
							<td className="number">{Number.isFinite(n.p99All) ? `≈ ${duration(n.p99All)}` : "–"}</td>
							<td className="number">
								{n.name === null ? null : (
									<button
										type="button"
										className="button plain"
										title="Click: show only this. Alt+click: show all but this."
										onClick={(event) => {
											event.stopPropagation();
											toggleFilter("comm", n.name ?? "", event.altKey);
										}}
									>
										{filter.comm?.includes(n.name) ? "all again" : "only this"}
									</button>
								)}
							</td>
						</tr>
					))}
				</tbody>
			</table>
		</div>
	);
}
