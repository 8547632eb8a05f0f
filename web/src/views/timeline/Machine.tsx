// The machine as a whole, above the lanes and on their time axis.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { Swatch } from "../../components/text";
import { Tip, TipRows } from "../../components/tip";
import { useSize } from "../../components/useSize";
import { bytes, duration, exactTime } from "../../lib/format";
import { said } from "../../lib/said";
import { type Span, toTime } from "../../lib/scale";
import { useColumns, useSession, useShown } from "../../state/session";
import { store, useParam } from "../../state/store";
import { useTheme } from "../../state/theme";
import { listen } from "./gestures";
import {
	devicePlots,
	devicesOf,
	expectedHeight,
	type MachineLine,
	type MachinePlot,
	machinePlots,
	plotAt,
	rowAt,
} from "./machine";
import { NAME_WIDTH, type Palette, palette } from "./paint";
import { paintMachine } from "./paintmachine";

const BUCKETS = 500;

interface Hover {
	plot: MachinePlot;
	row: number;
	x: number;
	y: number;
}

/** Nothing where the table is empty; in a running recording it may get its first row later. */
export function Machine() {
	const { about, live } = useSession();
	const recorded = about.tables.some((table) => table.name === "machine" && table.rows > 0);
	return recorded || live ? <Group recorded={recorded} /> : null;
}

function Group({ recorded }: { recorded: boolean }) {
	const { about } = useSession();
	const theme = useTheme();
	const [openParam, setOpen] = useParam("machine", "1");
	const open = openParam === "1";
	const [eachParam, setEach] = useParam("devices", "");
	const each = eachParam === "1";
	const hasDevices = about.tables.some((table) => table.name === "block" && table.rows > 0);
	const machine = useColumns({ path: "machine", pixels: BUCKETS, filtered: false });
	const busy = useColumns(open && hasDevices ? { path: "machine/devices", pixels: BUCKETS, filtered: false } : null);
	const cpus = about.machine?.cpus ?? 0;
	const memory = about.machine?.memory_bytes ?? 0;
	const own = useMemo(
		() => (machine.data ? machinePlots(machine.data, cpus, memory, theme) : []),
		[machine.data, cpus, memory, theme],
	);
	const devices = useMemo(() => (busy.data ? devicesOf(busy.data) : []), [busy.data]);
	const shares = useMemo(() => (busy.data ? devicePlots(busy.data, each, theme) : []), [busy.data, each, theme]);
	if (!recorded && (machine.data?.rows ?? 0) === 0) return null;
	const [first, second, ...rest] = own;
	// The devices, whose answer may be the first, stand between the others.
	const plots = machine.data ? [first, second, ...shares, ...rest].flatMap((plot) => (plot ? [plot] : [])) : [];
	// As high as it will be, so that nothing moves when it is there.
	const least = plots.length > 0 && (busy.data || !hasDevices) ? 0 : expectedHeight(hasDevices);
	return (
		<section className="machine" aria-label="Machine" aria-busy={open && (machine.loading || busy.loading)}>
			<div className="machine-head">
				<button type="button" className="button plain" aria-expanded={open} onClick={() => setOpen(open ? "0" : "1")}>
					{open ? "▾" : "▸"} Machine
				</button>
				<span className="faint">
					{cpus > 0 ? `${cpus} processors, ${bytes(memory)}; ` : ""}all programs, not only those that were recorded
				</span>
				{open && devices.length > 1 ? (
					<button
						type="button"
						className={each ? "button on timeline-layers" : "button timeline-layers"}
						aria-pressed={each}
						onClick={() => setEach(each ? "" : "1")}
					>
						All {devices.length} devices
					</button>
				) : null}
				{busy.data?.metaFlag("many") ? (
					<span className="faint">Too many requests to sum up: zoom in to see how busy devices were.</span>
				) : null}
			</div>
			{open ? <Plots plots={plots} least={least} /> : null}
		</section>
	);
}

function Plots({ plots, least }: { plots: readonly MachinePlot[]; least: number }) {
	const session = useSession();
	const { span } = useShown();
	const theme = useTheme();
	// biome-ignore lint/correctness/useExhaustiveDependencies: the colors are those of the theme
	const colors = useMemo(palette, [theme]);
	const holder = useRef<HTMLElement>(null);
	const { width, height } = useSize(holder);
	const scrolls = plots.reduce((sum, plot) => sum + plot.high, 0) > height;
	const [hover, setHover] = useState<Hover | null>(null);
	const [marked, setMarked] = useState<Span | null>(null);
	const now = useRef({ span, bounds: session.bounds, width, plots });
	now.current = { span, bounds: session.bounds, width, plots };
	useEffect(() => {
		const element = holder.current;
		if (!element) return;
		return listen({
			element,
			ruler: 0,
			keys: false,
			span: () => now.current.span,
			bounds: () => now.current.bounds,
			width: () => now.current.width,
			room: () => element.scrollHeight - element.clientHeight,
			scroll: () => element.scrollTop,
			show: (next) => {
				now.current.span = next;
				store.move({ kind: "range", ...next });
			},
			scrollTo: (scroll) => {
				element.scrollTop = scroll;
			},
			mark: setMarked,
			hover: (x, y) => {
				const { plots: shown, width: wide } = now.current;
				const plot = plotAt(shown, y + element.scrollTop);
				const t = toTime(x - NAME_WIDTH, now.current.span, wide - NAME_WIDTH);
				const row = plot && x >= NAME_WIDTH ? rowAt(plot, t) : -1;
				const box = element.getBoundingClientRect();
				setHover(plot && row >= 0 ? { plot, row, x: box.left + x, y: box.top + y } : null);
			},
			leave: () => setHover(null),
			click: () => {},
			choose: (chosen) => store.go({ window: { kind: "range", ...chosen } }),
		});
	}, []);
	return (
		<section
			className="machine-plots"
			ref={holder}
			style={least > 0 ? { height: least } : undefined}
			aria-label="Plots of the machine"
			tabIndex={scrolls ? 0 : undefined}
		>
			{plots.map((plot) => (
				<PlotRow
					key={plot.title}
					plot={plot}
					width={width - NAME_WIDTH}
					span={span}
					bounds={session.bounds}
					marked={marked}
					colors={colors}
				/>
			))}
			{hover ? (
				<Tip x={hover.x} y={hover.y}>
					<PlotTip plot={hover.plot} row={hover.row} />
				</Tip>
			) : null}
		</section>
	);
}

function PlotTip({ plot, row }: { plot: MachinePlot; row: number }) {
	const dur = plot.dur[row] ?? 0;
	return (
		<>
			<div className="head">
				<b>{plot.title}</b> · {exactTime(plot.t[row] ?? 0)}{" "}
				{dur > 0 ? <span className="faint">+ {duration(dur)}</span> : null}
			</div>
			<TipRows
				rows={plot.lines
					.filter((line) => Number.isFinite(line.values[row]))
					.map((line) => ({ label: line.label, color: line.color, value: line.show(line.values[row] ?? 0, row) }))}
			/>
			<div className="faint">{plot.what}</div>
		</>
	);
}

interface PlotProps {
	plot: MachinePlot;
	width: number;
	span: Span;
	bounds: Span;
	marked: Span | null;
	colors: Palette;
}

function PlotRow({ plot, width, span, bounds, marked, colors }: PlotProps) {
	const canvas = useRef<HTMLCanvasElement>(null);
	const words = useMemo(() => said(plot.lines, plot.from, plot.format, duration), [plot]);
	// Without the line above it.
	const high = plot.high - 1;
	useLayoutEffect(() => {
		const element = canvas.current;
		const context = element?.getContext("2d", { alpha: false });
		if (!element || !context || width <= 0) return;
		const ratio = window.devicePixelRatio || 1;
		const size = { width: Math.round(width * ratio), height: Math.round(high * ratio) };
		if (element.width !== size.width) element.width = size.width;
		if (element.height !== size.height) element.height = size.height;
		paintMachine({ context, width, height: high, ratio, colors, span, bounds, marked }, plot);
	}, [plot, width, high, span, bounds, marked, colors]);
	return (
		<div
			className="machine-plot"
			style={{ height: plot.high }}
			role="img"
			aria-label={`${plot.title}, ${plot.what}, over time. ${words}`}
		>
			<div className="machine-name">
				<div>
					{plot.title} <span className="faint">to {plot.format(plot.top)}</span>
				</div>
				{plot.lines.length > 1 ? <Key lines={plot.lines} /> : null}
			</div>
			<canvas ref={canvas} style={{ width: Math.max(0, width), height: high }} />
		</div>
	);
}

/** The lines that are more than nothing somewhere. */
function Key({ lines }: { lines: readonly MachineLine[] }) {
	return (
		<div className="machine-key">
			{lines
				.filter((line) => line.values.some((value) => value > 0))
				.map((line) => (
					<span key={line.label}>
						<Swatch color={line.color} />
						{line.label}
					</span>
				))}
		</div>
	);
}
