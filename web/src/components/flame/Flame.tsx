// Draws a flame graph: the root on top, levels below, wide frames first. A click zooms to a frame.

import { useEffect, useMemo, useRef, useState } from "react";
import { colorOf, purposeOf, type Theme } from "../../lib/color";
import { changeOf, type FlameNode, type Level, nodeAt, nodesTo, type Placed, pathOf, placedOf } from "../../lib/flame";
import { bothDurations, duration, exact, percent, shortPath, visible } from "../../lib/format";
import { PAGE_FAULT } from "../../lib/sums";
import { canvasFont, token, useTheme } from "../../state/theme";
import { Tip, TipRows } from "../tip";
import { useSize } from "../useSize";
import "./style.css";

const ROW = 24;
/** Narrower frames are not drawn. */
const LEAST_PX = 1;
/** Rows of the list below, which is for keyboards and exact figures. */
const LISTED = 8;

export const LEVEL_TITLES: Readonly<Record<Level, string>> = {
	process: "process",
	file: "file",
	syscall: "call",
	layer: "layer",
	ahead: "ahead on the device",
};

interface Props {
	root: FlameNode;
	levels: number;
	/** The names from below the root down to the frame that fills the width. */
	focus: readonly string[];
	setFocus: (names: readonly string[]) => void;
	/** Colors say how each frame has changed, and `before` is shown. */
	compared?: boolean;
	label: string;
}

export function Flame({ root, levels, focus, setFocus, compared = false, label }: Props) {
	const theme = useTheme();
	const holder = useRef<HTMLDivElement>(null);
	const canvas = useRef<HTMLCanvasElement>(null);
	const { width } = useSize(holder);
	const [hover, setHover] = useState<{ placed: Placed; x: number; y: number } | null>(null);
	const node = useMemo(() => nodeAt(root, focus), [root, focus]);
	// Each directory that is open on the way adds a level.
	const height = (levels + 1 + openedOn(node)) * ROW;
	// In a comparison a frame is as wide as the larger of its two sides, so that what is gone can be seen as well.
	const placed = useMemo(
		() => (width > 0 ? placedOf(node, LEAST_PX / width, compared ? larger : undefined) : []),
		[node, width, compared],
	);
	useEffect(() => {
		const target = canvas.current;
		const context = target?.getContext("2d");
		if (!target || !context || width === 0) return;
		const ratio = window.devicePixelRatio || 1;
		target.width = Math.round(width * ratio);
		target.height = Math.round(height * ratio);
		context.scale(ratio, ratio);
		context.clearRect(0, 0, width, height);
		context.font = canvasFont(12);
		context.textBaseline = "middle";
		for (const frame of placed) {
			const x = frame.from * width;
			const wide = (frame.to - frame.from) * width;
			const y = (frame.node.depth + Number(frame.more > 0)) * ROW;
			if (frame.more > 0) {
				hatch(context, x, y, wide, token("--line-strong"));
				continue;
			}
			const fill = compared ? changeColor(frame.node, theme) : frameColor(frame.node, theme);
			context.globalAlpha = frame.node.depth < node.depth ? 0.45 : 1;
			context.fillStyle = fill;
			context.fillRect(x, y, Math.max(1, wide - 1), ROW - 1);
			if (wide > 24) {
				context.save();
				context.beginPath();
				context.rect(x, y, wide - 4, ROW);
				context.clip();
				context.fillStyle = "#0b1016";
				context.globalAlpha = 1;
				context.fillText(fitted(context, frame.node, wide - 12), x + 6, y + ROW / 2);
				context.restore();
			}
		}
		context.globalAlpha = 1;
	}, [placed, width, height, theme, compared, node]);
	const at = (clientX: number, clientY: number): Placed | null => {
		const box = canvas.current?.getBoundingClientRect();
		if (!box) return null;
		const share = (clientX - box.left) / box.width;
		const depth = Math.floor((clientY - box.top) / ROW);
		const isAt = (p: Placed) => p.node.depth + Number(p.more > 0) === depth && share >= p.from && share < p.to;
		return placed.find(isAt) ?? null;
	};
	const whole = root.ns;
	return (
		<div className="flame">
			<nav className="flame-path" aria-label="Frame in focus">
				<button type="button" onClick={() => setFocus([])} disabled={focus.length === 0}>
					all calls
				</button>
				{nodesTo(node).map((of, i, nodes) => (
					<span key={of.name}>
						{" › "}
						<button type="button" onClick={() => setFocus(pathOf(of))} disabled={i === nodes.length - 1}>
							{shown(of, 40)}
						</button>
					</span>
				))}
				<span className="quiet">
					{" "}
					{duration(node.ns)}
					{whole > 0 ? `, ${percent(node.ns / whole)} of all` : ""}
					{compared ? `; before ${duration(node.before)}` : ""}
				</span>
			</nav>
			<div className="flame-frames" ref={holder} style={{ height }}>
				<canvas
					ref={canvas}
					role="img"
					aria-label={`${label}. ${saidOf(node)}`}
					onPointerMove={(event) => {
						const found = at(event.clientX, event.clientY);
						setHover(found ? { placed: found, x: event.clientX, y: event.clientY } : null);
					}}
					onPointerLeave={() => setHover(null)}
					onClick={(event) => {
						const found = at(event.clientX, event.clientY);
						if (found) setFocus(pathOf(found.node));
					}}
				/>
				{hover ? (
					<Tip x={hover.x} y={hover.y}>
						{hover.placed.more > 0 ? (
							`${exact(hover.placed.more)} frames that are too narrow to be drawn: zoom in to see them`
						) : (
							<Told node={hover.placed.node} whole={whole} focus={node} compared={compared} />
						)}
					</Tip>
				) : null}
			</div>
			<ul className="flame-below" aria-label="Frames below">
				{node.children.slice(0, LISTED).map((child) => (
					<li key={child.name}>
						<button type="button" onClick={() => setFocus(pathOf(child))}>
							<span
								className="swatch"
								style={{ background: compared ? changeColor(child, theme) : frameColor(child, theme) }}
							/>
							<span className="cut">{shown(child, 44)}</span>
							<span className="quiet">
								{duration(child.ns)}
								{node.ns > 0 && !compared ? ` ${percent(child.ns / node.ns)}` : ""}
								{compared ? ` ${signed(child.ns - child.before)}` : ""}
							</span>
						</button>
					</li>
				))}
				{node.children.length > LISTED ? <li className="faint">{node.children.length - LISTED} more</li> : null}
			</ul>
		</div>
	);
}

/** A label in so many letters: paths keep their ends, words of a directory their beginning. */
function shown({ level, label }: FlameNode, letters: number): string {
	const text = visible(label);
	if (level !== "directory") return shortPath(text, letters);
	return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
}

/** Directories on the way to a node of which the next node is in them. */
function openedOn(node: FlameNode): number {
	const inside = (of: FlameNode) => of.level === "directory" || of.level === "file";
	return nodesTo(node).filter((of, i, all) => {
		const next = all[i + 1];
		return of.level === "directory" && (next === undefined || inside(next));
	}).length;
}

/** Frames that are too narrow: not drawn as empty. */
function hatch(context: CanvasRenderingContext2D, x: number, y: number, wide: number, color: string): void {
	context.save();
	context.beginPath();
	context.rect(x, y, wide, ROW - 1);
	context.clip();
	context.strokeStyle = color;
	context.beginPath();
	for (let at = x - ROW; at < x + wide; at += 6) {
		context.moveTo(at, y + ROW);
		context.lineTo(at + ROW, y);
	}
	context.stroke();
	context.restore();
}

function larger(of: FlameNode): number {
	if (of.children.length === 0) return Math.max(of.ns, of.before);
	const below = of.children.reduce((all, child) => all + larger(child), 0);
	return Math.max(of.ns, of.before, below);
}

function signed(ns: number): string {
	return `${ns < 0 ? "−" : "+"}${duration(Math.abs(ns))}`;
}

interface ToldProps {
	node: FlameNode;
	whole: number;
	focus: FlameNode;
	compared: boolean;
}

function Told({ node, whole, focus, compared }: ToldProps) {
	const rows = [{ label: "time", value: bothDurations(node.ns) }];
	if (compared) {
		rows.push({ label: "before", value: bothDurations(node.before) });
		rows.push({ label: "difference", value: signed(node.ns - node.before) });
	}
	if (whole > 0) rows.push({ label: "of all calls and page faults", value: percent(node.ns / whole) });
	if (focus.ns > 0 && focus.parent) rows.push({ label: "of the focus", value: percent(node.ns / focus.ns) });
	return (
		<>
			<div className="head">
				{node.level && node.level !== "directory" ? `${LEVEL_TITLES[node.level]} ` : ""}
				<b>{visible(node.label)}</b>
			</div>
			<TipRows rows={rows} />
			{node.files ? <div className="faint">click: what is in it</div> : null}
		</>
	);
}

/** What those who do not see the frames are told: the widest ones below. */
function saidOf(node: FlameNode): string {
	const most = node.children.slice(0, 3).map((child) => `${visible(child.label)} ${duration(child.ns)}`);
	return `${visible(node.label)}: ${duration(node.ns)}${most.length ? `, of it ${most.join(", ")}` : ""}`;
}

/** As much of a name as fits: paths keep their ends. */
function fitted(context: CanvasRenderingContext2D, node: FlameNode, room: number): string {
	const name = visible(node.label);
	const long = `${name}  ${duration(node.ns)}`;
	if (context.measureText(long).width <= room) return long;
	if (context.measureText(name).width <= room) return name;
	const each = context.measureText("0").width || 7;
	const letters = Math.floor(room / each);
	if (letters < 3) return "";
	return node.level === "file" ? `…${name.slice(-(letters - 1))}` : `${name.slice(0, letters - 1)}…`;
}

function frameColor(node: FlameNode, theme: Theme): string {
	switch (node.level) {
		case null:
			return theme === "dark" ? "hsl(215 12% 62%)" : "hsl(215 16% 78%)";
		case "syscall":
			return readable(colorOf("purpose", node.name === PAGE_FAULT ? node.name : purposeOf(node.name), theme));
		case "layer":
			return readable(colorOf("layer", node.name, theme));
		case "file":
		case "directory":
			return theme === "dark" ? "hsl(215 18% 66%)" : "hsl(215 26% 82%)";
		default:
			return readable(colorOf("comm", node.name, theme));
	}
}

/** Light enough for dark text on it. */
function readable(color: string): string {
	return `color-mix(in oklab, ${color} 72%, white)`;
}

/** Longer is orange, shorter blue, and as before gray. */
function changeColor(node: FlameNode, theme: Theme): string {
	const change = changeOf(node);
	const share = Math.round(Math.min(1, Math.abs(change) * 1.2) * 100);
	const still = theme === "dark" ? "hsl(215 8% 66%)" : "hsl(215 10% 84%)";
	return `color-mix(in oklab, ${change > 0 ? "hsl(28 92% 62%)" : "hsl(206 84% 66%)"} ${share}%, ${still})`;
}
