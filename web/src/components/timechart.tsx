// A plot over time: lines, areas, stacks or a heat map, with an axis in units, a cursor that all plots of a page share,
// exact values beside the pointer, and a brush that sets the window.

import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Heat } from "../lib/buckets";
import { rampRgb, type Theme } from "../lib/color";
import { duration, exactTime, time } from "../lib/format";
import { said } from "../lib/said";
import { binaryStep, niceStep, type Span, ticks, timeStep } from "../lib/scale";
import { showSpan } from "../state/store";
import { canvasFont, token, useTheme } from "../state/theme";
import { NowEdge } from "./now";
import { type Axis, drawSheet, listenForClicks, type Pointed, pointed, type Sheet } from "./plotframe";
import { Tip, type TipRow, TipRows } from "./tip";
import { useSize } from "./useSize";

export interface PlotSeries {
	label: string;
	color: string;
	/** NaN leaves a gap. */
	values: Float64Array;
	/** `stack` lies on the stacks before it; `marks` are lines without what would join them. */
	style: "line" | "area" | "stack" | "dots" | "marks";
}

export interface HeatMap extends Heat {
	/** What a row stands for beside the pointer: the range of its power of two. */
	format: (value: number) => string;
	/** What is counted; calls, when it is not said. */
	unit?: string;
	/** A cell's value in words, where it is not a count. */
	show?: (value: number) => string;
}

interface Props {
	/** What the plot shows, for readers who do not see it. */
	label: string;
	span: Span;
	/** Begin of each bucket. */
	t: Float64Array;
	bucket: number;
	series: readonly PlotSeries[];
	/** Drawn below the series; the vertical axis is the logarithm to base 2 then, of the series too. */
	heat?: HeatMap;
	height: number;
	format: (value: number) => string;
	/** What the vertical axis counts, beside it: of values that say no unit. */
	unit?: string | undefined;
	exact?: (value: number) => string;
	/** Ticks at powers of two instead of ten. */
	binary?: boolean | undefined;
	/** Least value at the top of the axis. */
	atLeast?: number;
	/** The times stand below the plot; false where another plot with them is right below. */
	times?: boolean;
	/** Values lie at their times and anywhere: not each over a bucket from there on. */
	loose?: boolean | undefined;
	/** The vertical axis is the logarithm to base 2. */
	log?: boolean | undefined;
	/** The ends of the vertical axis; without them from 0 to the highest value. */
	range?: readonly [number, number] | undefined;
	/** Instead of the session's time. */
	axis?: Axis | undefined;
	sheet?: Sheet | undefined;
	/** A drag up or down, or both ways, over a part of the plot; null for what was not dragged over. */
	onBrush?: ((time: Span | null, values: Span | null) => void) | undefined;
	/** A click on the plot. */
	onPick?: ((at: Pointed) => void) | undefined;
	/** What a click leads to, beside the pointer. */
	leads?: string | undefined;
}

/** Room for the vertical axis, the same in every plot, so that times stand in line. */
export const AXIS_WIDTH = 64;
const RIGHT = 12;
/** Room in it for its unit, which is written along it. */
const UNIT_WIDTH = 15;
/** A drag that leaves its line by less is a drag along it. */
const UNMEANT = 24;

export function TimeChart(props: Props) {
	const { label, height, times = true } = props;
	const theme = useTheme();
	const holder = useRef<HTMLDivElement>(null);
	const { width } = useSize(holder);
	const plot = useRef<uPlot | null>(null);
	const latest = useRef(props);
	latest.current = props;
	const [hover, setHover] = useState<Hover | null>(null);

	const data = useMemo(() => aligned(props), [props]);
	const latestData = useRef(data);
	latestData.current = data;
	const shape = `${theme} ${props.heat ? "heat" : ""} ${props.log ? "log" : ""} ${props.loose ? "loose" : ""} ${props.axis?.sync} ${props.unit} ${times} ${props.series.map((s) => `${s.style}${s.color}${s.label}`).join("|")}`;

	// biome-ignore lint/correctness/useExhaustiveDependencies: `shape` stands for what the plot is made of
	useEffect(() => {
		const element = holder.current;
		if (!element || width === 0) return;
		const made = new uPlot(options(latest, theme, width, height, times, setHover), latestData.current, element);
		plot.current = made;
		return () => {
			made.destroy();
			plot.current = null;
		};
	}, [shape, width === 0]);

	useEffect(() => {
		if (width > 0) plot.current?.setSize({ width, height });
	}, [width, height]);

	useEffect(() => {
		plot.current?.setData(data);
	}, [data]);

	const told = hover ? toldAt(props, hover) : null;
	const { series, t, axis, format } = props;
	const words = useMemo(() => said(series, t, format, axis?.format ?? duration), [series, t, axis, format]);
	return (
		<div
			className={props.onPick ? "plot picks" : "plot"}
			ref={holder}
			style={{ height }}
			role="img"
			aria-label={words === "" ? label : `${label}. ${words}`}
		>
			{axis === undefined ? (
				<NowEdge
					span={props.span}
					left={AXIS_WIDTH}
					wide={width - AXIS_WIDTH - RIGHT}
					known={t.length > 0 ? (t.at(-1) ?? 0) + props.bucket : undefined}
					named={times}
				/>
			) : null}
			{hover && told ? (
				<Tip x={hover.x} y={hover.y}>
					{told}
				</Tip>
			) : null}
		</div>
	);
}

interface Hover extends Pointed {
	/** Of the pointer, in the window. */
	x: number;
	y: number;
}

/** What stands beside the pointer. */
function toldAt(props: Props, hover: Hover): ReactNode {
	if (props.sheet?.tip) return props.sheet.tip(hover);
	if (hover.index < 0) return null;
	return (
		<>
			<div className="head">
				{props.axis ? (
					props.axis.head(hover.index)
				) : (
					<>
						{exactTime(props.t[hover.index] ?? 0)}{" "}
						{props.loose ? null : <span className="faint">+ {duration(props.bucket)}</span>}
					</>
				)}
			</div>
			<TipRows rows={tipRows(props, hover.index, hover.value)} />
			{props.leads ? <div className="faint">click: {props.leads}</div> : null}
		</>
	);
}

function isLog(props: Props): boolean {
	return props.heat !== undefined || props.log === true;
}

/** A chart with the dots that can be pointed at, where it has some. */
function withDots(props: Props) {
	const dots = props.series.find((s) => s.style === "dots")?.values;
	return { ...props, dots, scaled: (v: number) => (isLog(props) ? Math.log2(Math.max(v, 1)) : v) };
}

/** uPlot's columns: stacks as sums, drawn from the highest down, each over the one before. */
function aligned(props: Props): uPlot.AlignedData {
	const columns: (Float64Array | (number | null)[])[] = [];
	let sum: Float64Array | null = null;
	for (const series of props.series) {
		if (series.style === "stack") {
			const next = new Float64Array(series.values.length);
			for (let i = 0; i < next.length; i += 1) next[i] = (sum?.[i] ?? 0) + (series.values[i] || 0);
			sum = next;
			columns.push(next);
		} else {
			columns.push(
				Array.from(series.values, (v) => (Number.isFinite(v) ? (isLog(props) ? Math.log2(Math.max(v, 1)) : v) : null)),
			);
		}
	}
	return [props.t, ...drawn(props.series).map((i) => columns[i] ?? [])] as uPlot.AlignedData;
}

/** The order in which series are drawn: stacks from the last to the first, then the others. */
function drawn(series: readonly PlotSeries[]): number[] {
	const order = series.map((_, i) => i);
	const stacks = order.filter((i) => series[i]?.style === "stack").reverse();
	return [...stacks, ...order.filter((i) => series[i]?.style !== "stack")];
}

function tipRows(props: Props, index: number, value: number): TipRow[] {
	const show = props.exact ?? props.format;
	const rows: TipRow[] = props.series
		.filter(
			(s) =>
				Number.isFinite(s.values[index]) &&
				(s.style !== "stack" || (s.values[index] ?? 0) > 0 || props.series.length < 6),
		)
		.map((s) => ({ label: s.label, color: s.color, value: show(s.values[index] ?? 0) }));
	if (props.heat && props.heat.rows > 0) {
		const row = Math.floor(value) - props.heat.low;
		if (row >= 0 && row < props.heat.rows) {
			const low = 2 ** (row + props.heat.low);
			const calls = props.heat.counts[index * props.heat.rows + row] ?? 0;
			rows.unshift({
				label: `${props.heat.format(low)} to ${props.heat.format(low * 2)}`,
				value: props.heat.show?.(calls) ?? `${calls.toLocaleString("en")} ${props.heat.unit ?? "calls"}`,
			});
		}
	}
	return rows;
}

type Latest = { current: Props };

function options(
	latest: Latest,
	theme: Theme,
	width: number,
	height: number,
	times: boolean,
	setHover: (hover: Hover | null) => void,
): uPlot.Options {
	const props = latest.current;
	const ink = token("--ink-3");
	// Lines over a heat map would look like data.
	const grid = { show: props.heat === undefined, stroke: token("--grid"), width: 1 };
	const font = canvasFont(11);
	const stepped = uPlot.paths.stepped?.({ align: 1 });
	const series: uPlot.Series[] = drawn(props.series).map((i) => {
		const s = props.series[i];
		const filled = s?.style === "area" || s?.style === "stack";
		const made: uPlot.Series = {
			label: s?.label ?? "",
			stroke: s?.color ?? ink,
			width: filled ? 0 : s?.style === "marks" ? 2 : 1.5,
			points: s?.style === "dots" ? { show: true, size: 4, width: 0, fill: s.color } : { show: false },
			spanGaps: false,
		};
		if (filled && s) made.fill = s.color;
		if (s?.style === "dots") made.paths = () => null;
		else if (s?.style === "marks") made.paths = marks;
		else if (s?.style === "line" && !props.loose) made.paths = steps;
		else if (stepped && !props.loose) made.paths = stepped;
		return made;
	});
	return {
		width,
		height,
		padding: [8, RIGHT, times ? 0 : 8, 0],
		legend: { show: false },
		cursor: {
			sync: {
				key: props.axis ? (props.axis.sync ?? "none") : "time",
				setSeries: false,
				// Other plots take part in a drag along the time; a box is of this plot alone.
				filters: { pub: (kind) => props.onBrush === undefined || !/^mouse(down|up)$/.test(kind) },
			},
			drag: {
				x: props.axis === undefined || props.axis.brush !== undefined,
				y: props.onBrush !== undefined,
				// Less than this many pixels across or down were not meant.
				uni: UNMEANT,
				setScale: false,
			},
			points: { show: false },
			y: false,
		},
		scales: {
			x: { time: false, range: () => [latest.current.span.from, latest.current.span.to] },
			y: { range: (_, low, high) => yRange(latest.current, low, high) },
		},
		axes: [
			{
				show: times,
				stroke: ink,
				grid,
				ticks: { show: false },
				font,
				size: 24,
				gap: 4,
				splits: (u, _axis, from, to) => {
					const room = u.width / 130;
					return latest.current.axis?.ticks({ from, to }, room) ?? ticks({ from, to }, timeStep({ from, to }, room));
				},
				values: (_u, values) => {
					const { axis, bucket } = latest.current;
					if (axis) return values.map(axis.format);
					return values.map((v) => time(v, (values[1] ?? 0) - (values[0] ?? 0) || bucket));
				},
			},
			{
				stroke: ink,
				grid,
				ticks: { show: false },
				font,
				// With its unit it is as wide as without.
				...(props.unit === undefined
					? { size: AXIS_WIDTH }
					: { size: AXIS_WIDTH - UNIT_WIDTH, label: props.unit, labelSize: UNIT_WIDTH, labelGap: 0, labelFont: font }),
				gap: 6,
				splits: (_u, _axis, from, to) =>
					isLog(latest.current)
						? decades(from, to)
						: ticks(
								{ from, to },
								(latest.current.binary ? binaryStep : niceStep)((to - from) / Math.max(2, height / 45)),
							),
				values: (_u, values) => values.map((v) => latest.current.format(isLog(latest.current) ? 2 ** v : v)),
			},
		],
		series: [{}, ...series],
		hooks: {
			drawClear: [(u) => drawHeat(u, latest.current, theme)],
			drawAxes: [(u) => drawSheet(u, latest.current.sheet)],
			ready: [(u) => listenForClicks(u, () => withDots(latest.current))],
			setSelect: [
				(u) => {
					const { left, top, width: wide, height: tall } = u.select;
					if (wide < 3 || tall < 3) return;
					const times = { from: u.posToVal(left, "x"), to: u.posToVal(left + wide, "x") };
					const values = { from: u.posToVal(top + tall, "y"), to: u.posToVal(top, "y") };
					u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
					const { axis, onBrush } = latest.current;
					if (onBrush) {
						// A drag one way spans the plot the other way.
						const whole = { wide: wide >= u.over.clientWidth - 1, tall: tall >= u.over.clientHeight - 1 };
						onBrush(whole.wide ? null : times, whole.tall ? null : values);
					} else if (axis) axis.brush?.(times);
					else showSpan(times);
				},
			],
			setCursor: [
				(u) => {
					const { left = -1, top = -1 } = u.cursor;
					// Another plot's cursor moves this one's line; only the one below the pointer tells values.
					if (left < 0 || top < 0 || !u.over.matches(":hover")) {
						setHover(null);
						return;
					}
					const box = u.over.getBoundingClientRect();
					setHover({ ...pointed(u, withDots(latest.current), left, top), x: box.left + left, y: box.top + top });
				},
			],
		},
	};
}

/** A level line for each bucket that has a value, as wide as the bucket; joined where neighbors have one too. */
function levels(joined: boolean): uPlot.Series.PathBuilder {
	return (u, index, from, to) => {
		const stroke = new Path2D();
		const times = u.data[0];
		const values = u.data[index];
		const bucket = (times[1] ?? 0) - (times[0] ?? 0);
		let open = false;
		for (let i = from; i <= to; i += 1) {
			const value = values?.[i];
			if (value === null || value === undefined) {
				open = false;
				continue;
			}
			const t = times[i] ?? 0;
			const x = u.valToPos(t, "x", true);
			const y = u.valToPos(value, "y", true);
			if (open && joined) stroke.lineTo(x, y);
			else stroke.moveTo(x, y);
			stroke.lineTo(u.valToPos(t + bucket, "x", true), y);
			open = true;
		}
		return { stroke, fill: null, clip: null, band: null, gaps: [], flags: 0 };
	};
}

const marks = levels(false);
const steps = levels(true);

function yRange(props: Props, low: number | null, high: number | null): [number, number] {
	if (props.range) return [props.range[0], props.range[1]];
	if (props.heat) {
		const { low: first, rows } = props.heat;
		if (rows === 0) return [10, 30];
		// A margin, so that the lowest row can be told from the axis.
		return [first, first + Math.max(rows, 4)];
	}
	if (props.log) {
		const bottom = Math.floor((low ?? 0) - 0.5);
		return low === null || high === null ? [10, 30] : [bottom, Math.max(Math.ceil(high + 0.5), bottom + 4)];
	}
	const top = Math.max(high ?? 0, props.atLeast ?? 0);
	return [0, top > 0 ? top * 1.06 : 1];
}

/** The powers of ten on an axis of powers of two. */
function decades(from: number, to: number): number[] {
	const made: number[] = [];
	for (let power = 0; power <= 15; power += 1) {
		const v = power * Math.log2(10);
		if (v >= from && v <= to) made.push(v);
	}
	return made;
}

/** The heat map as a picture of one pixel a cell, stretched over the plot. */
function drawHeat(u: uPlot, props: Props, theme: Theme): void {
	const { heat, t, bucket } = props;
	const columns = t.length;
	if (!heat || heat.rows === 0 || columns === 0) return;
	const cells = new ImageData(columns, heat.rows);
	const pixels = cells.data;
	const top = Math.log1p(heat.max);
	for (let column = 0; column < columns; column += 1) {
		for (let row = 0; row < heat.rows; row += 1) {
			const calls = heat.counts[column * heat.rows + row] ?? 0;
			if (calls <= 0) continue;
			const [r, g, b] = rampRgb(0.12 + (0.88 * Math.log1p(calls)) / top, theme);
			const at = ((heat.rows - 1 - row) * columns + column) * 4;
			pixels[at] = r;
			pixels[at + 1] = g;
			pixels[at + 2] = b;
			pixels[at + 3] = 255;
		}
	}
	const picture = document.createElement("canvas");
	picture.width = columns;
	picture.height = heat.rows;
	picture.getContext("2d")?.putImageData(cells, 0, 0);
	const left = u.valToPos(t[0] ?? 0, "x", true);
	const right = u.valToPos((t[columns - 1] ?? 0) + bucket, "x", true);
	const upper = u.valToPos(heat.low + heat.rows, "y", true);
	const lower = u.valToPos(heat.low, "y", true);
	u.ctx.save();
	u.ctx.beginPath();
	u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
	u.ctx.clip();
	u.ctx.imageSmoothingEnabled = false;
	u.ctx.drawImage(picture, left, upper, right - left, lower - upper);
	u.ctx.restore();
}
