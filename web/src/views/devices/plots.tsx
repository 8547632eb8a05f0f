import { useMemo } from "react";
import type { Columns } from "../../api/arrow";
import { Legend } from "../../components/legend";
import { bucketOf, onward, showProgress } from "../../components/onward";
import { Panel, Shown } from "../../components/panel";
import { Segmented } from "../../components/segmented";
import { type PlotSeries, TimeChart } from "../../components/timechart";
import { useTall } from "../../components/useTall";
import { type Grid, gridOf, heatOf, type Keyed, seriesOf } from "../../lib/buckets";
import { colorOf, ramp, type Theme } from "../../lib/color";
import { bytes, count, duration, exact, visible } from "../../lib/format";
import type { Resource } from "../../state/resource";
import { useColumns, useShown } from "../../state/session";
import { toggleFilter, useParam } from "../../state/store";
import { token, useTheme } from "../../state/theme";
import {
	byUser,
	type Measure,
	quantileLine,
	type Stacked,
	sampled,
	sharesText,
	stacked,
	withoutUnseen,
} from "./series";

const BUCKETS = 400;
/** Least height of a plot, and its share of the window. */
const LEAST = 210;
const SHARE = 0.2;

function path(device: string): string {
	return `devices/${encodeURIComponent(device)}`;
}

/** A click shows the device and the threads in the time of a bucket. */
export function toTimeline(grid: Pick<Grid, "t" | "bucket">) {
	return onward("Timeline of this time", ({ index }) => {
		const time = bucketOf(grid, index);
		if (time) showProgress(time);
	});
}

interface OfDevice {
	device: string;
	/** How many requests waited and were in the device at once, by who submitted them. */
	atOnce: Resource<Columns>;
}

export function Depth({ device, atOnce }: OfDevice) {
	const { span } = useShown();
	const height = useTall(LEAST, SHARE);
	const theme = useTheme();
	const answer = useColumns({ path: path(device), pixels: BUCKETS });
	const most = useMemo(() => {
		if (!answer.data) return null;
		const grid = gridOf(answer.data);
		return { grid, max: sampled(answer.data, grid, "depth_max"), mean: sampled(answer.data, grid, "depth_mean") };
	}, [answer.data]);
	// Where the times of requests were not seen, only the depths that the device had are known.
	const made = useMemo(() => {
		if (!atOnce.data || atOnce.data.rows === 0) return null;
		const tiles = atOnce.data;
		const grid = gridOf(tiles);
		return { grid, device: seriesOf(tiles, grid, "device"), queue: seriesOf(tiles, grid, "queue") };
	}, [atOnce.data]);
	const grid = made?.grid ?? most?.grid;
	const colors = { device: colorOf("layer", "device", theme), queue: colorOf("layer", "block", theme) };
	const series: PlotSeries[] = made
		? [
				{ label: "in device", color: colors.device, values: made.device, style: "stack" },
				{ label: "waiting", color: colors.queue, values: made.queue, style: "stack" },
			]
		: most
			? [{ label: "in device when a request started", color: colors.device, values: most.mean, style: "area" }]
			: [];
	if (most && grid && most.grid.length === grid.length)
		series.push({ label: "most in device", color: colorOf("series", "max", theme), values: most.max, style: "dots" });
	return (
		<Panel
			title="Queue depth"
			note="requests at once, mean"
			head={<Legend entries={series} />}
			picture={`depth-${device}`}
		>
			<Shown of={made ? atOnce : answer} height={height} empty={(data) => data.rows === 0}>
				{() =>
					grid && (
						<TimeChart
							label={`Requests waiting for ${device} and in it over time`}
							span={span}
							t={grid.t}
							bucket={grid.bucket}
							{...toTimeline(grid)}
							series={series}
							height={height}
							atLeast={2}
							unit="requests at once"
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
				{ label: "p99", color: colorOf("series", "p99", theme), values: made.p99, style: "line" },
				{ label: "p50", color: colorOf("series", "p50", theme), values: made.p50, style: "line" },
			]
		: [];
	return (
		<Panel
			title="Device latency"
			note="driver to completion"
			head={
				<Legend
					entries={[{ label: "few", color: ramp(0.12, theme) }, { label: "many", color: ramp(1, theme) }, ...series]}
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
							{...toTimeline(made.grid)}
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
	["both", "waiting + in device"],
	["queue", "in queue"],
	["device", "in device"],
	["requests", "requests/s"],
	["bytes", "bytes/s"],
];

const NOTES: Readonly<Record<Measure, string>> = {
	both: "requests at once, mean, by thread name; below the line in the device, above it waiting",
	device: "requests in the device at once, mean, by thread name",
	queue: "requests waiting for the device at once, mean, by thread name",
	requests: "requests per second, by thread name",
	bytes: "bytes per second, by thread name",
};

/** What the axis counts. */
const UNITS: Readonly<Record<Measure, string>> = {
	both: "requests at once",
	device: "requests at once",
	queue: "requests at once",
	requests: "requests/s",
	bytes: "bytes/s",
};

/** What the shares are of. */
const SHARES: Readonly<Record<Measure, string>> = {
	both: "Share of the time that requests waited or were in the device",
	queue: "Share of the time that requests waited",
	device: "Share of the time that requests were in the device",
	requests: "Share of the requests",
	bytes: "Share of the bytes",
};

const NAMED = 10;

function nameOf(user: Keyed): string {
	return user.key === "" ? "not known" : visible(user.label);
}

function plotOf(user: Keyed, label: string, color: string): PlotSeries {
	return { label, color, values: user.values, style: "stack" };
}

/** In the device at the bottom, those that wait on them and paler, a line between. */
function stackedSeries(
	{ device, queue, border }: Stacked,
	theme: Theme,
): { all: Keyed[]; users: Keyed[]; series: PlotSeries[] } {
	const users = new Map<string | null, Keyed>();
	for (const user of [...queue, ...device]) if (!users.has(user.key)) users.set(user.key, user);
	// Not transparent: stacks are drawn over each other.
	const ground = token("--surface");
	const paler = (key: string | null) => `color-mix(in srgb, ${colorOf("comm", key, theme)} 45%, ${ground})`;
	return {
		all: [...queue, ...device],
		users: [...users.values()],
		series: [
			...device.map((u) => plotOf(u, `${nameOf(u)}, in device`, colorOf("comm", u.key, theme))),
			...queue.map((u) => plotOf(u, `${nameOf(u)}, waiting`, paler(u.key))),
			{ label: "all, in device", color: token("--ink"), values: border, style: "line" },
		],
	};
}

export function Users({ device, atOnce }: OfDevice) {
	const { span } = useShown();
	const height = useTall(LEAST, SHARE);
	const theme = useTheme();
	const [param, setMeasure] = useParam("of", "both");
	const measure = MEASURES.find(([id]) => id === param)?.[0] ?? "both";
	const timed = measure === "both" || measure === "device" || measure === "queue";
	const sums = useColumns(timed ? null : { path: path(device), params: { by: "comm" }, pixels: BUCKETS });
	const answer = timed ? atOnce : sums;
	const made = useMemo(() => {
		if (!answer.data) return null;
		const tiles = answer.data;
		const grid = gridOf(tiles);
		if (measure === "both") return { grid, ...stackedSeries(stacked(tiles, grid, NAMED), theme) };
		const users = byUser(tiles, grid, measure, timed ? 1 : 1e9 / grid.bucket, NAMED).filter((u) => u.total > 0);
		return { grid, all: users, users, series: users.map((u) => plotOf(u, nameOf(u), colorOf("comm", u.key, theme))) };
	}, [answer.data, timed, measure, theme]);
	const color = (key: string | null) => colorOf("comm", key, theme);
	const format =
		measure === "bytes" ? bytes : measure === "requests" ? count : (v: number) => exact(Math.round(v * 100) / 100);
	return (
		<Panel
			title="Who filled the queue"
			note={NOTES[measure]}
			head={
				made ? (
					<Legend
						entries={[
							...(measure === "both" ? [{ label: "above the line: waiting", color: token("--ink") }] : []),
							...made.users.map((u) => ({
								label: nameOf(u),
								color: color(u.key),
								...(u.key ? { onPick: ({ alt }: { alt: boolean }) => toggleFilter("comm", u.key ?? "", alt) } : {}),
							})),
						]}
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
				emptyTitle={timed ? "The times of its requests were not recorded" : "No requests in this window"}
				emptyText={
					timed
						? "Devices made of other devices do not report them: choose requests/s or bytes/s."
						: "Widen the window (0)."
				}
			>
				{() =>
					made && (
						<>
							<p className="devices-said">
								{SHARES[measure]}: <b>{sharesText(made.all, 4)}</b>
							</p>
							<TimeChart
								label={`${NOTES[measure]}, ${device}, over time`}
								span={span}
								t={made.grid.t}
								bucket={made.grid.bucket}
								{...toTimeline(made.grid)}
								series={made.series}
								height={height}
								binary={measure === "bytes"}
								unit={UNITS[measure]}
								format={format}
							/>
						</>
					)
				}
			</Shown>
		</Panel>
	);
}
