import { useMemo } from "react";
import type { Columns } from "../../api/arrow";
import type { TilesBy } from "../../api/session";
import type { ListMember } from "../../api/types";
import { Legend } from "../../components/legend";
import { Panel, Shown } from "../../components/panel";
import { Segmented } from "../../components/segmented";
import { type PlotSeries, TimeChart } from "../../components/timechart";
import { gridOf, heatOf, perSecond, seriesByKey, seriesOf } from "../../lib/buckets";
import { colourOf, ERROR, type Kind, ramp, type Theme } from "../../lib/colour";
import { isNumeric } from "../../lib/filters";
import { bytes, count, duration, exact } from "../../lib/format";
import { quantile } from "../../lib/scale";
import { useColumns, useShown } from "../../state/session";
import { toggleFilter } from "../../state/store";
import { useTheme } from "../../state/theme";

/** About as many buckets as there are pairs of pixels on a wide screen; the server rounds to what it has. */
const BUCKETS = 600;

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

export function Throughput({ by, setBy }: { by: string; setBy: (by: string) => void }) {
	const { span } = useShown();
	const theme = useTheme();
	const kind = (BYS.some(([id]) => id === by) ? by : "syscall") as TilesBy;
	const tiles = useColumns({ path: "tiles", params: { by: kind, top: 8 }, pixels: BUCKETS });
	const made = useMemo(() => (tiles.data ? throughput(tiles.data, kind, theme) : null), [tiles.data, kind, theme]);
	return (
		<Panel
			title="Calls, bytes and errors"
			note="per second"
			head={made ? <Legend entries={made.legend} /> : undefined}
			end={<Segmented label="By" value={kind} options={BYS} onChange={setBy} />}
			picture="throughput"
		>
			<Shown of={tiles} height={296}>
				{() =>
					made && (
						<>
							<div className="subplot">calls/s</div>
							<TimeChart
								label="Calls per second over time"
								span={span}
								t={made.grid.t}
								bucket={made.grid.bucket}
								series={made.calls}
								height={120}
								times={false}
								format={count}
								exact={(v) => `${exact(Math.round(v))}/s`}
							/>
							<div className="subplot">
								bytes/s: read <b style={{ color: colourOf("series", "read", theme) }}>■</b> written{" "}
								<b style={{ color: colourOf("series", "written", theme) }}>■</b>
							</div>
							<TimeChart
								label="Bytes per second over time"
								span={span}
								t={made.grid.t}
								bucket={made.grid.bucket}
								series={made.bytes}
								height={78}
								times={false}
								format={bytes}
								exact={(v) => `${bytes(v)}/s`}
							/>
							<div className="subplot">errors/s</div>
							<TimeChart
								label="Errors per second over time"
								span={span}
								t={made.grid.t}
								bucket={made.grid.bucket}
								series={made.errors}
								height={68}
								format={count}
								exact={(v) => `${exact(Math.round(v * 100) / 100)}/s`}
							/>
						</>
					)
				}
			</Shown>
		</Panel>
	);
}

function throughput(tiles: Columns, by: TilesBy, theme: Theme) {
	const grid = gridOf(tiles);
	const rate = (values: Float64Array) => perSecond(values, grid.bucket);
	const keyed = seriesByKey(tiles, grid, "calls");
	const colour = (key: string | null) => colourOf(by as Kind, key, theme);
	const calls: PlotSeries[] = keyed.map((s) => ({
		label: s.label,
		colour: colour(s.key),
		values: rate(s.values),
		style: "stack",
	}));
	const member = MEMBERS[by];
	const series = (column: string, name: string, label: string, style: PlotSeries["style"]): PlotSeries => ({
		label,
		colour: colourOf("series", name, theme),
		values: rate(seriesOf(tiles, grid, column)),
		style,
	});
	return {
		grid,
		calls,
		bytes: [series("bytes_read", "read", "read", "line"), series("bytes_written", "written", "written", "line")],
		errors: [
			{ label: "errors", colour: ERROR[theme], values: rate(seriesOf(tiles, grid, "errors")), style: "area" as const },
		],
		legend: keyed.map((s) => ({
			label: s.label,
			colour: colour(s.key),
			...(member && s.key !== null
				? {
						onPick: ({ alt }: { alt: boolean }) =>
							toggleFilter(member, isNumeric(member) ? Number(s.key) : (s.key ?? ""), alt),
					}
				: {}),
		})),
	};
}

export function Latency() {
	const { span } = useShown();
	const theme = useTheme();
	const tiles = useColumns({ path: "tiles", params: { by: "none", latency: 1 }, pixels: BUCKETS / 2 });
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
				{ label: "longest", colour: colourOf("series", "max", theme), values: made.max, style: "dots" },
				{
					label: "p99 (within a power of two)",
					colour: colourOf("series", "p99", theme),
					values: made.p99,
					style: "line",
				},
				{
					label: "p50 (within a power of two)",
					colour: colourOf("series", "p50", theme),
					values: made.p50,
					style: "line",
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
						{ label: "few", colour: ramp(0.12, theme) },
						{ label: "many calls", colour: ramp(1, theme) },
						...series,
					]}
				/>
			}
			picture="latency"
		>
			<Shown of={tiles} height={296}>
				{() =>
					made && (
						<TimeChart
							label="Calls by duration over time"
							span={span}
							t={made.grid.t}
							bucket={made.grid.bucket}
							series={series}
							heat={{ ...made.heat, format: duration }}
							height={296}
							format={duration}
						/>
					)
				}
			</Shown>
		</Panel>
	);
}
