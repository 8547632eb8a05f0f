// How long calls took, by what they do: calls of different kinds are not comparable.

import { useMemo } from "react";
import type { Columns } from "../../api/arrow";
import type { Purpose } from "../../api/calls";
import { Lists } from "../../api/ipc";
import { Panel, Shown } from "../../components/panel";
import { Segmented } from "../../components/segmented";
import { Swatch } from "../../components/text";
import { type PlotSeries, TimeChart } from "../../components/timechart";
import { gridOf, type Heat, heatOf, seriesOf } from "../../lib/buckets";
import { colorOf, ramp } from "../../lib/color";
import { count, duration, exact, percent } from "../../lib/format";
import { type Latency, latencyOf, PURPOSES, weighted } from "../../lib/latency";
import type { Span } from "../../lib/scale";
import type { Resource } from "../../state/resource";
import { useShown } from "../../state/session";
import { useSlowest } from "../../state/slowest";
import { showSpan, store, useParam } from "../../state/store";
import { useTheme } from "../../state/theme";
import { Difference } from "./difference";

const WEIGHTS = [
	["time", "by time"],
	["calls", "by calls"],
] as const;

/** What a kind of calls does, for people. */
const MEANINGS: Readonly<Record<Purpose, string>> = {
	read: "moves bytes out of files",
	write: "moves bytes into files",
	sync: "makes data durable",
	metadata: "opens, looks up, describes, renames, ...",
	other: "maps memory, locks, waits for operations, ...",
};

export function LatencyPanel({ totals }: { totals: Resource<Columns> }) {
	const { span } = useShown();
	const theme = useTheme();
	const slowest = useSlowest();
	const [purposeParam, setPurpose] = useParam("latency", "all");
	const [weightParam, setWeight] = useParam("weight", "time");
	const purpose = PURPOSES.find((p) => p === purposeParam) ?? null;
	const weight = weightParam === "calls" ? "calls" : "time";
	// The page's first sums have no latencies.
	const coming = totals.data?.has("latency") === false;
	const byPurpose = coming ? { ...totals, data: undefined } : totals;
	const made = useMemo(() => {
		if (!byPurpose.data) return null;
		const grid = gridOf(byPurpose.data);
		const only = purpose === null ? byPurpose.data : ofPurpose(byPurpose.data, purpose);
		const heat = heatOf(only, grid);
		return { grid, heat: weight === "time" ? inTime(heat) : heat, max: seriesOf(only, grid, "max_ns", "max") };
	}, [byPurpose.data, purpose, weight]);
	const classes = useMemo(() => (totals.data ? latencyOf(totals.data) : []), [totals.data]);
	const series: PlotSeries[] = made
		? [
				{
					label: "longest",
					color: colorOf("series", "max", theme),
					values: made.max.map((v) => (v > 0 ? v : Number.NaN)),
					style: "dots",
				},
			]
		: [];
	const pick = (index: number) => {
		const t = made?.grid.t[index];
		if (made && t !== undefined && (made.max[index] ?? 0) > 0) {
			const filter =
				purpose === null || !byPurpose.data ? {} : { dur: [null, made.max[index] ?? null] as [null, number] };
			slowest(filter, { from: t, to: t + made.grid.bucket });
		}
	};
	return (
		<Panel
			title="Latency"
			note="drag a box: how its calls differ; click: the longest call there"
			head={
				<span className="ramp" aria-hidden="true">
					few
					{[0.12, 0.34, 0.56, 0.78, 1].map((v) => (
						<Swatch key={v} color={ramp(v, theme)} />
					))}
					much
				</span>
			}
			end={<Segmented label="Weight" value={weight} options={WEIGHTS} onChange={setWeight} />}
			picture="latency"
		>
			<div className="latency">
				<Classes classes={classes} coming={coming} chosen={purpose} choose={(p) => setPurpose(p ?? "all")} />
				<Shown of={byPurpose} height={264}>
					{() =>
						made && (
							<TimeChart
								label={`Latency of ${purpose ?? "all"} calls over time`}
								span={span}
								t={made.grid.t}
								bucket={made.grid.bucket}
								series={series}
								heat={{ ...made.heat, format: duration, ...(weight === "time" ? { show: duration } : {}) }}
								height={264}
								format={duration}
								onPick={(at) => pick(at.index)}
								onBrush={(time, values) => brushed(time, values, span)}
							/>
						)
					}
				</Shown>
			</div>
			<Difference />
		</Panel>
	);
}

/** A box is asked about; a drag along the time alone zooms, as everywhere. */
function brushed(time: Span | null, values: Span | null, span: Span): void {
	if (values === null) {
		if (time) showSpan(time);
		return;
	}
	const { from, to } = time ?? span;
	const box = [from, to, 2 ** values.from, 2 ** values.to].map((v) => Math.round(v));
	store.go({ params: { box: box.join(",") } });
}

function ofPurpose(tiles: Columns, purpose: Purpose) {
	const keys = tiles.texts("key");
	const keep = keys.flatMap((key, i) => (key === purpose ? [i] : []));
	const taken = (values: Float64Array) => Float64Array.from(keep, (i) => values[i] ?? 0);
	return {
		rows: keep.length,
		f64: (name: string) => taken(tiles.f64(name)),
		texts: (name: string) => keep.map((i) => tiles.texts(name)[i] ?? null),
		flags: (name: string) => keep.map((i) => tiles.flags(name)[i] ?? false),
		lists: (name: string) => {
			const all = tiles.lists(name);
			return Lists.of(keep.map((i) => all.row(i)));
		},
		has: (name: string) => tiles.has(name),
		metaNumber: (name: string) => tiles.metaNumber(name),
	};
}

/** Time instead of calls in each cell. */
function inTime(heat: Heat): Heat {
	const counts = weighted(heat);
	return { ...heat, counts, max: counts.reduce((a, b) => Math.max(a, b), 0) };
}

interface ClassesProps {
	classes: readonly Latency[];
	/** Their percentiles are still to come. */
	coming: boolean;
	chosen: Purpose | null;
	choose: (purpose: Purpose | null) => void;
}

function Classes({ classes, coming, chosen, choose }: ClassesProps) {
	const theme = useTheme();
	const percentile = coming ? "number not-loaded" : "number";
	const part = (ns: number | null, sign: string) => (coming ? "" : ns === null ? "–" : `${sign} ${duration(ns)}`);
	const total = classes.reduce((all, c) => all + c.time, 0);
	return (
		<table className="figures latency-classes" aria-busy={coming}>
			<thead>
				<tr>
					<th>Kind</th>
					<th className="number">Calls</th>
					<th className="number" title="Share of the time in calls">
						Time
					</th>
					<th className="number" title="Half of the calls took less; p50 to within a factor of 2">
						p50
					</th>
					<th className="number" title="One call in a hundred took more; p99 to within a factor of 2">
						p99
					</th>
					<th className="number">Longest</th>
					<th className="number" title="Half of the time is in calls that took longer; to within a factor of 2">
						½ time
					</th>
				</tr>
			</thead>
			<tbody>
				{classes.map((c) => (
					<tr
						key={c.purpose}
						className={c.purpose === chosen ? "link chosen" : "link"}
						title={`${c.purpose}: ${MEANINGS[c.purpose]}. Click: only these in the plot.`}
						onClick={() => choose(c.purpose === chosen ? null : c.purpose)}
					>
						<td>
							<button type="button" className="plain-name" aria-pressed={c.purpose === chosen}>
								<Swatch color={colorOf("purpose", c.purpose, theme)} /> {c.purpose}
							</button>
						</td>
						<td className="number" title={exact(c.calls)}>
							{count(c.calls)}
						</td>
						<td className="number" title={duration(c.time)}>
							{total > 0 ? percent(c.time / total) : "–"}
						</td>
						<td className={percentile}>{part(c.p50, "≈")}</td>
						<td className={percentile}>{part(c.p99, "≈")}</td>
						<td className="number">{duration(c.max)}</td>
						<td className={percentile}>{part(c.halfTime, ">")}</td>
					</tr>
				))}
			</tbody>
		</table>
	);
}
