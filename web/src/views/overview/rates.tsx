// What happened over time: time in calls, bytes, errors.

import { useMemo } from "react";
import type { Columns } from "../../api/arrow";
import type { TilesBy } from "../../api/session";
import { Legend } from "../../components/legend";
import { Panel, Shown } from "../../components/panel";
import { Segmented } from "../../components/segmented";
import { Swatch } from "../../components/text";
import { type PlotSeries, TimeChart } from "../../components/timechart";
import { type Grid, gridOf, perSecond, seriesByKey, seriesOf } from "../../lib/buckets";
import { colorOf, ERROR, type Kind, type Theme } from "../../lib/color";
import type { ListMember } from "../../lib/filters";
import { isNumeric } from "../../lib/filters";
import { bytes, count, exact, inProgress, shortPath } from "../../lib/format";
import type { Span } from "../../lib/scale";
import { PAGE_FAULT } from "../../lib/sums";
import type { Resource } from "../../state/resource";
import { stripPixels, useColumns, useShown } from "../../state/session";
import { toggleFilter, useParam } from "../../state/store";
import { useTheme } from "../../state/theme";
import { tellsDirections } from "./totals";

const BYS: readonly (readonly [TilesBy, string])[] = [
	["purpose", "kind"],
	["syscall", "call"],
	["thread", "thread"],
	["file", "file"],
];

const METRICS = [
	["busy", "time in calls"],
	["calls", "calls/s"],
] as const;

const MEMBERS: Partial<Record<TilesBy, ListMember>> = { syscall: "syscall", thread: "tid", file: "file" };

interface Props {
	totals: Resource<Columns>;
	errors: Resource<Columns>;
}

export function Rates({ totals, errors }: Props) {
	const { span } = useShown();
	const theme = useTheme();
	const [byParam, setBy] = useParam("by", "purpose");
	const [metricParam, setMetric] = useParam("metric", "busy");
	const by = BYS.find(([id]) => id === byParam)?.[0] ?? "purpose";
	const metric = metricParam === "calls" ? "calls" : "busy";
	const others = by === "purpose" ? null : { by, top: 8, busy: 1, faults: 1 };
	const asked = useColumns(others && { path: "tiles", params: others, pixels: stripPixels() });
	const tiles = by === "purpose" ? totals : asked;
	// The pyramid distinguishes reads from writes only where it is not asked by thread or file.
	const made = useMemo(
		() => (tiles.data ? stacks(tiles.data, by, metric, theme) : null),
		[tiles.data, by, metric, theme],
	);
	const moved = useMemo(() => (totals.data ? traffic(totals.data, theme) : null), [totals.data, theme]);
	const failed = useMemo(() => (errors.data ? errorSeries(errors.data, theme) : null), [errors.data, theme]);
	return (
		<Panel
			title="Over time"
			note={metric === "busy" ? "calls and page faults in progress, on average" : "calls that begin, per second"}
			head={made ? <Legend entries={made.legend} /> : undefined}
			end={
				<>
					<Segmented label="Metric" value={metric} options={METRICS} onChange={setMetric} />
					<Segmented label="By" value={by} options={BYS} onChange={setBy} />
				</>
			}
			picture="rates"
		>
			<Shown of={tiles} height={346}>
				{() =>
					made && (
						<>
							<Band
								name={metric === "busy" ? "Calls in progress" : "Calls per second"}
								label={metric === "busy" ? "Calls in progress over time" : "Calls per second over time"}
								span={span}
								grid={made.grid}
								series={made.series}
								height={140}
								format={metric === "busy" ? inProgress : count}
								exact={metric === "busy" ? inProgress : (v) => `${exact(Math.round(v))}/s`}
							/>
							{moved ? (
								<Band
									name="Bytes per second"
									label="Bytes per second over time"
									span={span}
									grid={moved.grid}
									series={moved.series}
									named
									height={78}
									format={bytes}
									binary
									exact={(v) => `${bytes(v)}/s`}
								/>
							) : null}
							{failed ? (
								<Band
									name="Errors per second"
									label="Errors per second over time"
									span={span}
									grid={failed.grid}
									series={failed.series}
									named
									height={70}
									times
									format={count}
									exact={(v) => `${exact(Math.round(v * 100) / 100)}/s`}
								/>
							) : (
								<Loading height={88} />
							)}
						</>
					)
				}
			</Shown>
		</Panel>
	);
}

/** Keeps the place of a plot whose data are still to come, and says so. */
function Loading({ height }: { height: number }) {
	return <div className="not-loaded" style={{ height }} aria-busy="true" />;
}

interface BandProps {
	/** What is shown, and its unit. */
	name: string;
	label: string;
	span: Span;
	grid: Grid;
	series: readonly PlotSeries[];
	/** The names of the series stand above it. */
	named?: boolean;
	height: number;
	/** The last one has the axis of time. */
	times?: boolean;
	format: (value: number) => string;
	exact: (value: number) => string;
	binary?: boolean;
}

/** One of several plots over the same time, below each other. */
function Band({ name, grid, named = false, times = false, ...chart }: BandProps) {
	return (
		<>
			<div className="subplot">
				{name}{" "}
				{named
					? chart.series.map((s) => (
							<span key={s.label}>
								<Swatch color={s.color} /> {s.label}{" "}
							</span>
						))
					: null}
			</div>
			<TimeChart {...chart} t={grid.t} bucket={grid.bucket} times={times} />
		</>
	);
}

function stacks(tiles: Columns, by: TilesBy, metric: "busy" | "calls", theme: Theme) {
	const grid = gridOf(tiles);
	const keyed = seriesByKey(tiles, grid, metric === "busy" ? "busy_ns" : "calls").map((s) => ({
		...s,
		label: by === "thread" && s.key !== null ? `${s.label} ${s.key}` : by === "file" ? shortPath(s.label, 28) : s.label,
		color: colorOf(by as Kind, s.key, theme),
	}));
	const member = MEMBERS[by];
	const pick = (key: string) =>
		member && key !== PAGE_FAULT
			? {
					onPick: ({ alt }: { alt: boolean }) => toggleFilter(member, isNumeric(member) ? Number(key) : key, alt),
				}
			: {};
	const rate = (values: Float64Array) =>
		metric === "busy" ? values.map((v) => v / grid.bucket) : perSecond(values, grid.bucket);
	return {
		grid,
		series: keyed.map((s): PlotSeries => ({ label: s.label, color: s.color, values: rate(s.values), style: "stack" })),
		legend: keyed.map((s) => ({ label: s.label, color: s.color, ...(s.key ? pick(s.key) : {}) })),
	};
}

function traffic(tiles: Columns, theme: Theme) {
	const grid = gridOf(tiles);
	const series = (column: string, name: string, label: string): PlotSeries => ({
		label,
		color: colorOf("series", name, theme),
		values: perSecond(seriesOf(tiles, grid, column), grid.bucket),
		style: "line",
	});
	return {
		grid,
		series: tellsDirections(tiles)
			? [series("bytes_read", "read", "read"), series("bytes_written", "written", "written")]
			: [series("bytes", "time", "read and written")],
	};
}

/** Calls that failed, and calls that returned an error as an answer, such as look-ups that found nothing. */
function errorSeries(answer: Columns, theme: Theme) {
	const grid = gridOf(answer);
	const times = answer.f64("t");
	const calls = answer.f64("calls");
	const flags = answer.flags("failed");
	const values = { failed: new Float64Array(grid.length), answers: new Float64Array(grid.length) };
	for (let i = 0; i < answer.rows; i += 1) {
		const at = Math.round(((times[i] ?? 0) - (grid.t[0] ?? 0)) / grid.bucket);
		const side = flags[i] ? values.failed : values.answers;
		if (at >= 0 && at < grid.length) side[at] = (side[at] ?? 0) + (calls[i] ?? 0);
	}
	const series: PlotSeries[] = [
		{
			label: "failed",
			color: ERROR[theme],
			values: perSecond(values.failed, grid.bucket),
			style: "stack",
		},
		{
			label: "expected errors, such as look-ups of missing files",
			color: colorOf("series", "answers", theme),
			values: perSecond(values.answers, grid.bucket),
			style: "stack",
		},
	];
	return { grid, series };
}
