import { useMemo } from "react";
import { Panel, Shown } from "../../components/panel";
import { Segmented } from "../../components/segmented";
import { type Axis, type PlotSeries, type Pointed, TimeChart } from "../../components/timechart";
import { colourOf } from "../../lib/colour";
import { duration, exact, exactDuration, exactTime } from "../../lib/format";
import { niceStep, ticks } from "../../lib/scale";
import { useShortcut } from "../../state/keys";
import { useColumns } from "../../state/session";
import { showSpan, store, usePage, useParam } from "../../state/store";
import { useTheme } from "../../state/theme";
import { largestLayer, p99Of, type Requests, requestsOf, slowestFirst } from "./stack";

/** More bars than pixels show nothing more. */
const MOST = 4000;

const ORDERS = [
	["time", "in order"],
	["dur", "slowest first"],
] as const;

const SCALES = [
	["all", "whole"],
	["p99", "up to p99"],
] as const;

/** Each request in order, its time stacked by layer. */
export function RequestStacks({ height }: { height: number }) {
	const theme = useTheme();
	const { rid } = usePage();
	const [orderParam, setOrder] = useParam("order", "time");
	const [scaleParam, setScale] = useParam("scale", "all");
	const order = orderParam === "dur" ? "dur" : "time";
	const scale = scaleParam === "p99" ? "p99" : "all";
	const answer = useColumns({ path: "layers", params: { mode: "requests", limit: MOST } });
	const made = useMemo(() => {
		if (!answer.data) return null;
		const requests = requestsOf(answer.data);
		return order === "dur" ? slowestFirst(requests) : requests;
	}, [answer.data, order]);
	const total = answer.data?.metaNumber("total") ?? null;
	const places = useMemo(() => Float64Array.from({ length: made?.length ?? 0 }, (_, i) => i), [made]);
	const series = useMemo<PlotSeries[]>(
		() =>
			(made?.layers ?? []).map(({ layer, self }) => ({
				label: layer,
				colour: colourOf("layer", layer, theme),
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
			title="Each request"
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
							label={`Time of ${exact(made.length)} requests by layer, ${order === "dur" ? "the longest first" : "in the order of time"}`}
							span={{ from: 0, to: Math.max(made.length, 1) }}
							t={places}
							bucket={1}
							series={series}
							height={height}
							format={duration}
							exact={exactDuration}
							axis={axisOf(made, order)}
							sheet={selected >= 0 ? mark(selected, theme) : undefined}
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
			? `the first ${exact(made.length)} of ${exact(total)} in this window: narrow it for others`
			: `${exact(made.length)} in this window`;
	const more = [
		order === "time" ? "drag: zoom to them" : "",
		scale === "p99" ? "longer ones are cut off at the top" : "",
	].filter((part) => part !== "");
	return [shown, ...more].join("; ");
}

function axisOf(made: Requests, order: "time" | "dur"): Axis {
	return {
		ticks: (span, room) => ticks(span, Math.max(1, niceStep((span.to - span.from) / Math.max(room, 1)))),
		format: (value) => exact(value),
		head: (index) => (
			<>
				request {exact(index)} at {exactTime(made.t[index] ?? 0)}, took <b>{duration(made.dur[index] ?? 0)}</b>
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

/** A mark behind the selected bar. */
function mark(index: number, theme: "dark" | "light") {
	return {
		draw: (context: CanvasRenderingContext2D, frame: { x: (v: number) => number; top: number; height: number }) => {
			const left = frame.x(index);
			const wide = Math.max(4, frame.x(index + 1) - left);
			context.fillStyle = theme === "dark" ? "rgb(255 255 255 / 16%)" : "rgb(20 40 60 / 14%)";
			context.fillRect(left - 2, frame.top, wide + 4, frame.height);
		},
	};
}
