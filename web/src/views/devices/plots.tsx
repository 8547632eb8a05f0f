import { useMemo } from "react";
import { Legend } from "../../components/legend";
import { Panel, Shown } from "../../components/panel";
import { useSql } from "../../components/query/useSql";
import { Segmented } from "../../components/segmented";
import { type PlotSeries, TimeChart } from "../../components/timechart";
import { useTall } from "../../components/useTall";
import { gridOf, heatOf } from "../../lib/buckets";
import { colourOf, ramp } from "../../lib/colour";
import { bytes, count, duration, exact, visible } from "../../lib/format";
import { useColumns, useShown } from "../../state/session";
import { toggleFilter, usePage, useParam } from "../../state/store";
import { useTheme } from "../../state/theme";
import { filterText } from "../../state/url";
import { atOnceSql, atOnceTiles, byUser, type Measure, quantileLine, sampled, withoutUnseen } from "./series";

const BUCKETS = 400;
/** Least height of a plot, and its share of the window. */
const LEAST = 210;
const SHARE = 0.2;

function path(device: string): string {
	return `devices/${encodeURIComponent(device)}`;
}

export function Depth({ device }: { device: string }) {
	const { span } = useShown();
	const height = useTall(LEAST, SHARE);
	const theme = useTheme();
	const answer = useColumns({ path: path(device), pixels: BUCKETS });
	const made = useMemo(() => {
		if (!answer.data) return null;
		const grid = gridOf(answer.data);
		return { grid, mean: sampled(answer.data, grid, "depth_mean"), max: sampled(answer.data, grid, "depth_max") };
	}, [answer.data]);
	const series: PlotSeries[] = made
		? [
				{
					label: "mean",
					colour: colourOf("layer", "block", theme),
					values: made.mean.map((v) => v || 0),
					style: "area",
				},
				{ label: "most", colour: colourOf("series", "max", theme), values: made.max, style: "dots" },
			]
		: [];
	return (
		<Panel
			title="Queue depth"
			note="requests that the device had when it got one"
			head={<Legend entries={series} />}
			picture={`depth-${device}`}
		>
			<Shown of={answer} height={height} empty={(data) => data.rows === 0}>
				{() =>
					made && (
						<TimeChart
							label={`Queue depth of ${device} over time`}
							span={span}
							t={made.grid.t}
							bucket={made.grid.bucket}
							series={series}
							height={height}
							atLeast={2}
							format={(v) => exact(Math.round(v * 10) / 10)}
						/>
					)
				}
			</Shown>
		</Panel>
	);
}

export function Latency({ device }: { device: string }) {
	const { span } = useShown();
	const height = useTall(LEAST, SHARE);
	const theme = useTheme();
	const answer = useColumns({ path: path(device), pixels: BUCKETS / 2 });
	const made = useMemo(() => {
		if (!answer.data) return null;
		const grid = gridOf(answer.data);
		// No device answers within a nanosecond: the lowest power counts requests whose beginning was not seen.
		const heat = heatOf(withoutUnseen(answer.data), grid);
		return { grid, heat, p50: quantileLine(heat, grid.length, 0.5), p99: quantileLine(heat, grid.length, 0.99) };
	}, [answer.data]);
	const series: PlotSeries[] = made
		? [
				{ label: "p99", colour: colourOf("series", "p99", theme), values: made.p99, style: "line" },
				{ label: "p50", colour: colourOf("series", "p50", theme), values: made.p50, style: "line" },
			]
		: [];
	return (
		<Panel
			title="Device latency"
			note="driver to completion"
			head={
				<Legend
					entries={[{ label: "few", colour: ramp(0.12, theme) }, { label: "many", colour: ramp(1, theme) }, ...series]}
				/>
			}
			picture={`latency-${device}`}
		>
			<Shown of={answer} height={height} empty={(data) => data.rows === 0}>
				{() =>
					made && (
						<TimeChart
							label={`Requests to ${device} by duration over time`}
							span={span}
							t={made.grid.t}
							bucket={made.grid.bucket}
							series={series}
							heat={{ ...made.heat, format: duration, unit: "requests" }}
							height={height}
							format={duration}
						/>
					)
				}
			</Shown>
		</Panel>
	);
}

const MEASURES: readonly (readonly [Measure, string])[] = [
	["device", "at once"],
	["queue", "waiting"],
	["requests", "requests/s"],
	["bytes", "bytes/s"],
];

const NOTES: Readonly<Record<Measure, string>> = {
	device: "requests in the device at once, mean, by who submitted them",
	queue: "requests waiting for the device at once, mean, by who submitted them",
	requests: "requests per second, by who submitted them",
	bytes: "bytes per second, by who submitted them",
};

const NAMED = 10;
/** Buckets times names. */
const MOST_ROWS = 100_000;

export function Users({ device }: { device: string }) {
	const { span } = useShown();
	const height = useTall(LEAST, SHARE);
	const theme = useTheme();
	const [param, setMeasure] = useParam("of", "device");
	const measure = MEASURES.find(([id]) => id === param)?.[0] ?? "device";
	const { filter } = usePage();
	const timed = measure === "device" || measure === "queue";
	const sums = useColumns(timed ? null : { path: path(device), params: { by: "comm" }, pixels: BUCKETS });
	const atOnce = useSql(timed ? atOnceSql(device, measure, filterText(filter) !== "") : null, MOST_ROWS);
	const answer = timed ? atOnce : sums;
	const made = useMemo(() => {
		if (!answer.data) return null;
		const tiles = timed ? atOnceTiles(answer.data) : answer.data;
		const grid = gridOf(tiles);
		return { grid, users: byUser(tiles, grid, timed ? "n" : measure, timed ? 1 : 1e9 / grid.bucket, NAMED) };
	}, [answer.data, timed, measure]);
	const colour = (key: string | null) => colourOf("comm", key, theme);
	const format =
		measure === "bytes" ? bytes : measure === "requests" ? count : (v: number) => exact(Math.round(v * 100) / 100);
	return (
		<Panel
			title="Who filled the queue"
			note={NOTES[measure]}
			head={
				made ? (
					<Legend
						entries={made.users.map((u) => ({
							label: u.key === "" ? "not known" : visible(u.label),
							colour: colour(u.key),
							...(u.key ? { onPick: ({ alt }: { alt: boolean }) => toggleFilter("comm", u.key ?? "", alt) } : {}),
						}))}
					/>
				) : undefined
			}
			end={<Segmented label="Of" value={measure} options={MEASURES} onChange={setMeasure} />}
			picture={`who-${device}`}
		>
			<Shown
				of={answer}
				height={height}
				empty={(data) => data.rows === 0}
				emptyTitle={timed ? "When its requests began was not seen" : "No requests in this window"}
				emptyText={
					timed ? "A device made of others does not tell: choose requests/s or bytes/s." : "Widen the window (0)."
				}
			>
				{() =>
					made && (
						<TimeChart
							label={`${NOTES[measure]}, ${device}, over time`}
							span={span}
							t={made.grid.t}
							bucket={made.grid.bucket}
							series={made.users.map((u) => ({
								label: u.key === "" ? "not known" : visible(u.label),
								colour: colour(u.key),
								values: u.values,
								style: "stack",
							}))}
							height={height}
							binary={measure === "bytes"}
							format={format}
						/>
					)
				}
			</Shown>
		</Panel>
	);
}
