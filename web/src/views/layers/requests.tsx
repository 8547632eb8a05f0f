import { useMemo } from "react";
import { Panel, Shown } from "../../components/panel";
import type { Axis, Frame, Pointed } from "../../components/plotframe";
import { Segmented } from "../../components/segmented";
import { type PlotSeries, TimeChart } from "../../components/timechart";
import { colorOf, type Theme } from "../../lib/color";
import { bothDurations, counted, duration, exact, exactTime } from "../../lib/format";
import { niceStep, ticks } from "../../lib/scale";
import { useShortcut } from "../../state/keys";
import { useColumns } from "../../state/session";
import { showSpan, store, usePage, useParam } from "../../state/store";
import { token, useTheme } from "../../state/theme";
import { largestLayer, p99Of, type Requests, requestsOf, slowestFirst } from "./stack";

/** More bars than pixels show nothing more. */
const MOST = 4000;

const ORDERS = [
	["dur", "longest first"],
	["time", "in order"],
] as const;

const SCALES = [
	["all", "whole"],
	["p99", "up to p99"],
] as const;

/** Each request in order, its time stacked by layer. */
export function RequestStacks({ height }: { height: number }) {
	const theme = useTheme();
	const { rid } = usePage();
	const [orderParam, setOrder] = useParam("order", "dur");
	const [scaleParam, setScale] = useParam("scale", "all");
	const order = orderParam === "time" ? "time" : "dur";
	const scale = scaleParam === "p99" ? "p99" : "all";
	// Where there are more than can be drawn, those that took longest are what is looked for.
	const answer = useColumns({ path: "layers", params: { mode: "requests", limit: MOST, sort: "-dur_ns" } });
	const made = useMemo(() => {
		if (!answer.data) return null;
		const requests = requestsOf(answer.data);
		return order === "dur" ? slowestFirst(requests) : requests;
	}, [answer.data, order]);
	const total = answer.data?.metaNumber("total") ?? null;
	// A few requests took most of the time: the longer, the wider.
	const placeOf = order === "dur" ? rank : same;
	const places = useMemo(() => Float64Array.from({ length: made?.length ?? 0 }, (_, i) => placeOf(i)), [made, placeOf]);
	const series = useMemo<PlotSeries[]>(
		() =>
			(made?.layers ?? []).map(({ layer, self }) => ({
				label: layer,
				color: colorOf("layer", layer, theme),
				values: self,
				style: "stack",
			})),
		[made, theme],
	);

	const step = (by: 1 | -1) => {
		if (!made || made.length === 0) return;
		const at = rid === null ? -1 : made.rid.indexOf(rid);
		const next = at < 0 ? (by > 0 ? 0 : made.length - 1) : Math.min(Math.max(at + by, 0), made.length - 1);
		store.go({ rid: made.rid[next] ?? null });
	};
	useShortcut(["["], "The bar before", "Layers", () => step(-1));
	useShortcut(["]"], "The bar after", "Layers", () => step(1));

	const selected = made && rid !== null ? made.rid.indexOf(rid) : -1;
	const top = made && scale === "p99" ? p99Of(made.dur) * 1.15 : 0;
	return (
		<Panel
			title={order === "dur" ? "Each request, the longest first" : "Each request, in order of time"}
			note={made ? noteOf(made, total, order, scale) : undefined}
			end={
				<>
					<Segmented label="Order" value={order} options={ORDERS} onChange={setOrder} />
					<Segmented label="Scale" value={scale} options={SCALES} onChange={setScale} />
				</>
			}
			picture="layers-requests"
		>
			<Shown of={answer} height={height} empty={(data) => data.rows === 0}>
				{() =>
					made && (
						<TimeChart
							label={`Time of ${counted(made.length, "request")} by layer, ${order === "dur" ? "the longest first" : "in the order of time"}`}
							span={{ from: 0, to: placeOf(Math.max(made.length, 1)) }}
							t={places}
							bucket={1}
							series={series}
							height={height}
							format={duration}
							exact={bothDurations}
							axis={axisOf(made, order)}
							sheet={{ draw: marks(made, placeOf, selected, top, theme) }}
							{...(top > 0 ? { range: [0, top] as const } : {})}
							onPick={(at: Pointed) => at.index >= 0 && store.go({ rid: made.rid[at.index] ?? null })}
						/>
					)
				}
			</Shown>
		</Panel>
	);
}

function noteOf(made: Requests, total: number | null, order: string, scale: string): string {
	const shown =
		total !== null && total > made.length
			? `the ${exact(made.length)} longest of ${exact(total)} in this window; narrow it for all`
			: `all ${exact(made.length)} in this window`;
	const more = [
		order === "time" ? "drag: zoom to them" : "X: rank, logarithmic",
		scale === "p99" ? "marks on top: longer than the axis" : "",
	].filter((part) => part !== "");
	return [shown, ...more].join("; ");
}

const same = (i: number) => i;
const rank = (i: number) => Math.log10(i + 1);

function axisOf(made: Requests, order: "time" | "dur"): Axis {
	return {
		// The last one would be cut off by the edge.
		ticks: (span, room) =>
			order === "dur"
				? Array.from({ length: Math.floor(span.to) + 1 }, (_, power) => power)
				: ticks(span, Math.max(1, niceStep((span.to - span.from) / Math.max(room, 1)))).filter(
						(v) => v < span.to - (span.to - span.from) / 50,
					),
		format: (value) => exact(order === "dur" ? Math.round(10 ** value) : value),
		head: (index) => (
			<>
				request {exact(index + 1)} at {exactTime(made.t[index] ?? 0)}, took <b>{duration(made.dur[index] ?? 0)}</b>
				<span className="faint"> mostly {largestLayer(made, index) ?? "nowhere"}</span>
			</>
		),
		...(order === "time"
			? {
					brush: ({ from, to }) => {
						const first = Math.max(0, Math.floor(from));
						const last = Math.min(made.length - 1, Math.floor(to));
						showSpan({ from: made.t[first] ?? 0, to: (made.t[last] ?? 0) + (made.dur[last] ?? 0) + 1 });
					},
				}
			: {}),
	};
}

/** A band behind the selected bar, and a mark above each bar that the axis cuts off. */
function marks(made: Requests, placeOf: (i: number) => number, selected: number, top: number, theme: Theme) {
	return (context: CanvasRenderingContext2D, frame: Frame) => {
		if (selected >= 0) {
			const left = frame.x(placeOf(selected));
			const wide = Math.max(4, frame.x(placeOf(selected + 1)) - left);
			context.fillStyle = theme === "dark" ? "rgb(255 255 255 / 16%)" : "rgb(20 40 60 / 14%)";
			context.fillRect(left - 2, frame.top, wide + 4, frame.height);
		}
		if (top <= 0) return;
		context.fillStyle = token("--ink");
		const side = 3 * frame.ratio;
		for (let i = 0; i < made.length; i += 1) {
			if ((made.dur[i] ?? 0) <= top) continue;
			const x = frame.x(placeOf(i + 0.5));
			context.beginPath();
			context.moveTo(x, frame.top);
			context.lineTo(x - side, frame.top + side * 1.6);
			context.lineTo(x + side, frame.top + side * 1.6);
			context.fill();
		}
	};
}
