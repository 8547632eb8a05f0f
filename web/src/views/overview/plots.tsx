import { useMemo } from "react";
import type { Columns } from "../../api/arrow";
import type { TilesBy } from "../../api/session";
import { Legend } from "../../components/legend";
import { Panel, Shown } from "../../components/panel";
import { Segmented } from "../../components/segmented";
import { Swatch } from "../../components/text";
import { type PlotSeries, TimeChart } from "../../components/timechart";
import { type Grid, gridOf, heatOf, perSecond, seriesByKey, seriesOf } from "../../lib/buckets";
import { colorOf, ERROR, type Kind, ramp, type Theme } from "../../lib/color";
import type { ListMember } from "../../lib/filters";
import { isNumeric } from "../../lib/filters";
import { bytes, count, duration, exact, shortPath } from "../../lib/format";
import { quantile, type Span } from "../../lib/scale";
import type { Resource } from "../../state/resource";
import { useColumns, useShown } from "../../state/session";
import { toggleFilter } from "../../state/store";
import { useTheme } from "../../state/theme";
import { BUCKETS, tellsDirections } from "./totals";

const BYS: readonly (readonly [TilesBy, string])[] = [
	["syscall", "syscall"],
	["class", "class"],
	["thread", "thread"],
	["file", "file"],
];

const MEMBERS: Partial<Record<TilesBy, ListMember>> = {
	syscall: "syscall",
	class: "class",
	thread: "tid",
	process: "pid",
	file: "file",
};

interface ThroughputProps {
	by: string;
	setBy: (by: string) => void;
	totals: Resource<Columns>;
}

export function Throughput({ by, setBy, totals }: ThroughputProps) {
	const { span } = useShown();
	const theme = useTheme();
	const kind = (BYS.some(([id]) => id === by) ? by : "syscall") as TilesBy;
	const tiles = useColumns({ path: "tiles", params: { by: kind, top: 8 }, pixels: BUCKETS });
	// The pyramid tells reads from writes only where it is not asked by thread or file.
	const made = useMemo(() => (tiles.data ? calls(tiles.data, kind, theme) : null), [tiles.data, kind, theme]);
	const moved = useMemo(() => (totals.data ? traffic(totals.data, theme) : null), [totals.data, theme]);
	return (
		<Panel
			title="Calls, bytes and errors"
			note="per second"
			head={made ? <Legend entries={made.legend} /> : undefined}
			end={<Segmented label="By" value={kind} options={BYS} onChange={setBy} />}
			picture="throughput"
		>
			<Shown of={tiles} height={320}>
				{() =>
					made && (
						<>
							<Band
								name="calls/s"
								label="Calls per second over time"
								span={span}
								grid={made.grid}
								series={made.calls}
								height={120}
								format={count}
								exact={(v) => `${exact(Math.round(v))}/s`}
							/>
							{moved ? <Traffic moved={moved} span={span} /> : null}
						</>
					)
				}
			</Shown>
		</Panel>
	);
}

function Traffic({ moved, span }: { moved: ReturnType<typeof traffic>; span: Span }) {
	return (
		<>
			<Band
				name="bytes/s"
				label="Bytes per second over time"
				span={span}
				grid={moved.grid}
				series={moved.bytes}
				named
				height={78}
				format={bytes}
				binary
				exact={(v) => `${bytes(v)}/s`}
			/>
			<Band
				name="errors/s"
				label="Errors per second over time"
				span={span}
				grid={moved.grid}
				series={moved.errors}
				height={68}
				times
				format={count}
				exact={(v) => `${exact(Math.round(v * 100) / 100)}/s`}
			/>
		</>
	);
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

function calls(tiles: Columns, by: TilesBy, theme: Theme) {
	const grid = gridOf(tiles);
	const numbered = by === "thread" || by === "process";
	const keyed = seriesByKey(tiles, grid, "calls").map((s) => ({
		...s,
		label: numbered && s.key !== null ? `${s.label} ${s.key}` : by === "file" ? shortPath(s.label, 28) : s.label,
		color: colorOf(by as Kind, s.key, theme),
	}));
	const member = MEMBERS[by];
	const pick = (key: string) => ({
		onPick: ({ alt }: { alt: boolean }) =>
			toggleFilter(member ?? "syscall", member && isNumeric(member) ? Number(key) : key, alt),
	});
	return {
		grid,
		calls: keyed.map(
			(s): PlotSeries => ({
				label: s.label,
				color: s.color,
				values: perSecond(s.values, grid.bucket),
				style: "stack",
			}),
		),
		legend: keyed.map((s) => ({ label: s.label, color: s.color, ...(member && s.key ? pick(s.key) : {}) })),
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
	const errors: PlotSeries = {
		label: "errors",
		color: ERROR[theme],
		values: perSecond(seriesOf(tiles, grid, "errors"), grid.bucket),
		style: "area",
	};
	return {
		grid,
		bytes: tellsDirections(tiles)
			? [series("bytes_read", "read", "read"), series("bytes_written", "written", "written")]
			: [series("bytes", "time", "read and written")],
		errors: [errors],
	};
}

export function Latency({ totals: tiles }: { totals: Resource<Columns> }) {
	const { span } = useShown();
	const theme = useTheme();
	const made = useMemo(() => {
		if (!tiles.data) return null;
		const grid = gridOf(tiles.data);
		const heat = heatOf(tiles.data, grid);
		const line = (share: number) => {
			const values = new Float64Array(grid.length).fill(Number.NaN);
			for (let i = 0; i < grid.length; i += 1) {
				const q = quantile(heat.counts.subarray(i * heat.rows, (i + 1) * heat.rows), share);
				if (q !== null) values[i] = q * 2 ** heat.low;
			}
			return values;
		};
		const max = seriesOf(tiles.data, grid, "max_ns", "max").map((v) => (v > 0 ? v : Number.NaN));
		return { grid, heat, p50: line(0.5), p99: line(0.99), max };
	}, [tiles.data]);
	const series: PlotSeries[] = made
		? [
				{ label: "longest", color: colorOf("series", "max", theme), values: made.max, style: "dots" },
				{
					label: "p99 (within a power of two)",
					color: colorOf("series", "p99", theme),
					values: made.p99,
					style: "marks",
				},
				{
					label: "p50 (within a power of two)",
					color: colorOf("series", "p50", theme),
					values: made.p50,
					style: "marks",
				},
			]
		: [];
	return (
		<Panel
			title="Latency"
			note="calls by duration, powers of two"
			head={
				<Legend
					entries={[
						{ label: "few", color: ramp(0.12, theme) },
						{ label: "many calls", color: ramp(1, theme) },
						...series,
					]}
				/>
			}
			picture="latency"
		>
			<Shown of={tiles} height={320}>
				{() =>
					made && (
						<TimeChart
							label="Calls by duration over time"
							span={span}
							t={made.grid.t}
							bucket={made.grid.bucket}
							series={series}
							heat={{ ...made.heat, format: duration }}
							height={320}
							format={duration}
						/>
					)
				}
			</Shown>
		</Panel>
	);
}
