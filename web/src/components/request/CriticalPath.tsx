// What a request's time consists of, across threads and devices: a chain of segments that adds up to it.

import { useMemo, useRef, useState } from "react";
import type { PathAnswer, PathSegment, PathThread, Woken } from "../../api/types";
import { colorOf } from "../../lib/color";
import { bothDurations, count, duration, exactDuration, percent, visible } from "../../lib/format";
import { ticks, timeStep } from "../../lib/scale";
import { useJson } from "../../state/session";
import { token, useTheme } from "../../state/theme";
import { Legend } from "../legend";
import { Link } from "../link";
import { Panel, Shown } from "../panel";
import { Path, Swatch, Text } from "../text";
import { Tip, TipRows } from "../tip";
import { useSize } from "../useSize";
import {
	kindLabel,
	type Piece,
	piecesOf,
	plainOf,
	rowsOf,
	type Shape,
	sameThread,
	shapesOf,
	summaryOf,
	sumOf,
} from "./chain";
import { axis, cut } from "./Waterfall";

const ROW = 22;
const HEAD = 22;
const RIGHT = 154;
/** Threads with a line of their own: those with the most time. */
const LANES = 8;
/** Lines from thread to thread: more would cover the bars. The table has all. */
const WAKES = 80;
/** Segments with a row of their own, unless all are asked for. */
const ROWS = 24;

/** On the same axis of time as the layers of the request. */
export function CriticalPath({ rid, names }: { rid: number; names: number }) {
	const answer = useJson<PathAnswer>({ path: `requests/${rid}/path`, windowed: false, filtered: false });
	const theme = useTheme();
	const seen = answer.data && plainOf(answer.data) === null ? answer.data : undefined;
	const kinds = seen ? sumOf(piecesOf(seen).flatMap((piece) => piece.parts)) : [];
	return (
		<Panel
			title="Critical path"
			note={seen ? "the work and waits that this call's time consists of, over all threads" : undefined}
			head={
				<Legend entries={kinds.map(({ kind }) => ({ label: kindLabel(kind), color: colorOf("state", kind, theme) }))} />
			}
		>
			<Shown of={answer} height={answer.data === undefined ? 80 : 0}>
				{(data) => {
					const plain = plainOf(data);
					return (
						<>
							<p className="path-said">{plain ?? visible(data.headline)}</p>
							{plain === null ? <Chain key={rid} answer={data} rid={rid} names={names} /> : null}
							{data.notes.map((note) => (
								<p key={note} className="path-said faint">
									{note}
								</p>
							))}
						</>
					);
				}}
			</Shown>
		</Panel>
	);
}

function Chain({ answer, rid, names }: { answer: PathAnswer; rid: number; names: number }) {
	const pieces = useMemo(() => piecesOf(answer), [answer]);
	return (
		<>
			<Bars answer={answer} pieces={pieces} names={names} />
			<Segments answer={answer} pieces={pieces} rid={rid} />
		</>
	);
}

interface Lane {
	/** Null: of all threads. */
	thread: PathThread | null;
	name: string;
	dur: number;
	pieces: readonly Piece[];
}

/** The whole chain, and below it each thread's part of it. */
function lanesOf(answer: PathAnswer, pieces: readonly Piece[]): Lane[] {
	const all: Lane = { thread: null, name: "all threads", dur: answer.dur_ns, pieces };
	const shown = [...answer.threads].sort((a, b) => b.dur_ns - a.dur_ns).slice(0, LANES);
	const lanes = answer.threads
		.filter((thread) => shown.includes(thread))
		.map((thread) => ({
			thread,
			name: nameOf(thread),
			dur: thread.dur_ns,
			pieces: pieces.filter((piece) => sameThread(piece, thread)),
		}));
	return lanes.length === 1 ? lanes : [all, ...lanes];
}

function nameOf({ host, comm, tid }: Omit<PathThread, "dur_ns">): string {
	return `${host === null ? "" : `${visible(host)}: `}${comm === null ? "thread" : visible(comm)} ${tid}`;
}

function Bars({ answer, pieces, names }: { answer: PathAnswer; pieces: readonly Piece[]; names: number }) {
	const theme = useTheme();
	const holder = useRef<HTMLDivElement>(null);
	const { width } = useSize(holder);
	const [hover, setHover] = useState<{ shape: Shape; x: number; y: number } | null>(null);
	const all = Math.max(1, answer.dur_ns);
	const plot = Math.max(1, width - names - RIGHT);
	const x = (t: number) => names + ((t - answer.from) / all) * plot;
	const own = { from: 0, to: all };
	const step = timeStep(own, plot / 110);
	const lanes = useMemo(() => lanesOf(answer, pieces), [answer, pieces]);
	const shapes = useMemo(() => lanes.map((lane) => shapesOf(lane.pieces, all / plot)), [lanes, all, plot]);
	const height = HEAD + lanes.length * ROW + 4;
	const waking = answer.segments.filter((segment) => segment.wakes !== null);
	const middle = (of: Woken) => {
		const place = lanes.findIndex((lane) => lane.thread !== null && sameThread(lane.thread, of));
		return place < 0 ? null : HEAD + place * ROW + ROW / 2;
	};
	return (
		<div ref={holder} className="waterfall" style={{ minHeight: height }}>
			{width > 0 ? (
				<svg width={width} height={height} fontSize="12" role="img" aria-label={visible(summaryOf(answer))}>
					<title>Critical path by thread</title>
					{ticks(own, step).map((t) => (
						<g key={t}>
							<line
								x1={x(answer.from + t)}
								x2={x(answer.from + t)}
								y1={HEAD - 4}
								y2={height}
								stroke={token("--grid")}
							/>
							<text x={x(answer.from + t) + 3} y={14} fill={token("--ink-3")} fontSize="11">
								{t === 0 ? "0" : axis(t, step)}
							</text>
						</g>
					))}
					{lanes.map((lane, i) => {
						const top = HEAD + i * ROW;
						return (
							<g key={lane.name}>
								<text x={8} y={top + 15} fill={token("--ink")} fontWeight={lane.thread === null ? 600 : 400}>
									{cut(lane.name, Math.floor((names - 16) / 6.6))}
								</text>
								{shapes[i]?.map((shape) => (
									<Bar
										key={shape.t}
										shape={shape}
										left={x(shape.t)}
										width={(shape.width / all) * plot}
										top={top + 3}
										height={ROW - 7}
										color={(kind) => colorOf("state", kind, theme)}
										onMove={(event) => setHover({ shape, x: event.clientX, y: event.clientY })}
										onLeave={() => setHover(null)}
									/>
								))}
								<text x={width - 76} y={top + 15} fill={token("--ink")} textAnchor="end">
									{duration(lane.dur)}
								</text>
								<text x={width - 10} y={top + 15} fill={token("--ink-3")} textAnchor="end">
									{percent(lane.dur / all)}
								</text>
							</g>
						);
					})}
					{(waking.length <= WAKES ? waking : []).map((segment) => {
						if (segment.wakes === null) return null;
						const [from, to] = [middle(segment), middle(segment.wakes)];
						if (from === null || to === null) return null;
						const at = x(segment.t + segment.dur_ns);
						return (
							<g key={segment.t} stroke={token("--ink-2")} fill={token("--ink-2")} pointerEvents="none">
								<line x1={at} x2={at} y1={from} y2={to} />
								<circle cx={at} cy={to} r={2} stroke="none" />
							</g>
						);
					})}
				</svg>
			) : null}
			{hover ? (
				<Tip x={hover.x} y={hover.y}>
					<ShapeTip shape={hover.shape} answer={answer} />
				</Tip>
			) : null}
		</div>
	);
}

interface BarProps {
	shape: Shape;
	left: number;
	width: number;
	top: number;
	height: number;
	color: (kind: string) => string;
	onMove: (event: { clientX: number; clientY: number }) => void;
	onLeave: () => void;
}

/** Its parts above each other, each as high as its share. */
function Bar({ shape, left, width, top, height, color, onMove, onLeave }: BarProps) {
	let bottom = top + height;
	return (
		<g onPointerMove={onMove} onPointerLeave={onLeave}>
			{shape.parts.map(({ kind, dur_ns }) => {
				const tall = (dur_ns / Math.max(1, shape.width)) * height;
				bottom -= tall;
				return <rect key={kind} x={left} y={bottom} width={Math.max(0.5, width)} height={tall} fill={color(kind)} />;
			})}
		</g>
	);
}

function ShapeTip({ shape, answer }: { shape: Shape; answer: PathAnswer }) {
	const theme = useTheme();
	const { segment } = shape;
	const of = (value: string | null) => (value === null ? [] : [visible(value)]);
	return (
		<>
			<div className="head">
				{segment ? <b>{nameOf(segment)}</b> : <b>{count(shape.count)} segments</b>}{" "}
				<span className="faint">{duration(shape.t - answer.from)} after the call began</span>
			</div>
			<TipRows
				rows={[
					...shape.parts.map(({ kind, dur_ns }) => ({
						label: kindLabel(kind),
						value: bothDurations(dur_ns),
						color: colorOf("state", kind, theme),
					})),
					...of(segment?.reason ?? null).map((value) => ({ label: "reason", value: value.replaceAll("_", " ") })),
					...of(segment?.culprit ?? null).map((value) => ({ label: "waits for", value })),
					...of(segment?.syscall ?? null).map((value) => ({ label: "call", value })),
				]}
			/>
		</>
	);
}

function Segments({ answer, pieces, rid }: { answer: PathAnswer; pieces: readonly Piece[]; rid: number }) {
	const [open, setOpen] = useState(false);
	const few = useMemo(() => rowsOf(pieces, ROWS), [pieces]);
	const rows = useMemo(() => (open ? rowsOf(pieces, Number.POSITIVE_INFINITY) : few), [pieces, few, open]);
	const hidden = few.some((row) => row.segment === null);
	return (
		<>
			{/* biome-ignore lint/a11y/noNoninteractiveTabindex: without links in it, keys could not scroll it */}
			<section className="critical-rows" aria-label="Segments" tabIndex={0}>
				<table className="figures fitted critical-path">
					<thead>
						<tr>
							<th className="number">Start</th>
							<th className="number">Duration</th>
							<th className="number">Share</th>
							<th>Thread</th>
							<th>State</th>
							<th>Waits for</th>
							<th>Wakes</th>
							<th>Call</th>
							<th>Path</th>
						</tr>
					</thead>
					<tbody>
						{rows.map((row) => (
							<tr key={row.t}>
								<td className="number quiet">{duration(row.t - answer.from)}</td>
								<td className="number" title={exactDuration(row.dur)}>
									{duration(row.dur)}
								</td>
								<td className="number quiet">{percent(row.dur / Math.max(1, answer.dur_ns))}</td>
								{row.segment ? (
									<Cells segment={row.segment} rid={rid} answer={answer} />
								) : (
									<td colSpan={6} className="faint">
										{row.count === 1 ? "1 shorter segment" : `${count(row.count)} shorter segments`}
									</td>
								)}
							</tr>
						))}
					</tbody>
				</table>
			</section>
			{hidden ? (
				<p className="path-said">
					<button type="button" className="button plain" aria-pressed={open} onClick={() => setOpen(!open)}>
						{open ? "Only the longest segments" : "Shorter segments, too"}
					</button>
				</p>
			) : null}
		</>
	);
}

interface CellsProps {
	segment: PathSegment;
	rid: number;
	answer: PathAnswer;
}

function Cells({ segment, rid, answer }: CellsProps) {
	const theme = useTheme();
	const { kind, reason, host, wakes } = segment;
	// Another host of a set: what is there to see is in its own session.
	const away = host !== answer.host;
	const there = away && host !== null ? { session: host } : {};
	const woken = wakes === null ? undefined : answer.threads.find((thread) => sameThread(thread, wakes));
	const around = {
		kind: "range",
		from: Math.max(0, segment.t - segment.dur_ns / 4),
		to: segment.t + segment.dur_ns * 1.25,
	} as const;
	const call = segment.syscall ?? (segment.rid === null ? null : "request");
	const said =
		kind === "waiting" || kind === "unknown" ? (reason?.replaceAll("_", " ") ?? kindLabel(kind)) : kindLabel(kind);
	return (
		<>
			<td>
				{segment.depth > 0 ? (
					<>
						<span className="faint" aria-hidden="true">
							{"› ".repeat(Math.min(segment.depth, 4))}
						</span>
						<span className="only-read">{`${segment.depth} ${segment.depth === 1 ? "wait" : "waits"} away: `}</span>
					</>
				) : null}
				{host === null ? null : (
					<>
						<Text of={host} />:{" "}
					</>
				)}
				<Text of={segment.comm} /> <span className="faint">{segment.tid}</span>
			</td>
			<td>
				<Swatch color={colorOf("state", kind, theme)} /> {kind === "waiting" ? "waiting: " : null}
				{visible(said)}
			</td>
			<td>
				{segment.device !== null && !away ? (
					<Link
						to={{ view: "devices", window: around, filter: {}, params: { device: segment.device } }}
						className="critical-link"
						title="The queue of this device at that time"
					>
						{visible(segment.device)}
					</Link>
				) : segment.device !== null ? (
					<Text of={segment.device} />
				) : segment.culprit !== null ? (
					<Text of={segment.culprit} />
				) : null}
			</td>
			<td>
				{wakes !== null ? (
					<span title="The path goes on with the thread that this one woke">
						→ <Text of={woken?.comm ?? "thread"} /> <span className="faint">{wakes.tid}</span>
					</span>
				) : null}
			</td>
			<td>
				{call === null ? null : segment.rid === null || (segment.rid === rid && !away) ? (
					visible(call)
				) : (
					<Link
						to={{ ...there, view: "request", rid: segment.rid }}
						className="critical-link"
						title="This call through the layers"
					>
						{visible(call)}
					</Link>
				)}
			</td>
			<td>{segment.path === null ? null : <Path of={segment.path} />}</td>
		</>
	);
}
