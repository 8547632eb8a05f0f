// One request through the layers, as a waterfall: SVG, so that it can be read, selected and saved as it is.

import { useRef, useState } from "react";
import type { RequestAnswer } from "../../api/types";
import { colorOf } from "../../lib/color";
import { bothDurations, duration, percent, time, visible } from "../../lib/format";
import { ticks, timeStep } from "../../lib/scale";
import { token, useTheme } from "../../state/theme";
import { Tip, TipRows } from "../tip";
import { useSize } from "../useSize";
import { type Line, linesOf, spanOf, type Visit } from "./rows";

const ROW = 22;
const HEAD = 22;
const RIGHT = 154;

interface Props {
	answer: RequestAnswer;
	/** Room for the names of layers. */
	names: number;
	/** Without shares of the whole, where there is little room. */
	narrow?: boolean;
}

export function Waterfall({ answer, names, narrow }: Props) {
	const theme = useTheme();
	const holder = useRef<HTMLDivElement>(null);
	const { width } = useSize(holder);
	const [hover, setHover] = useState<{ line: Line; visit: Visit; x: number; y: number } | null>(null);
	const lines = linesOf(answer);
	const span = spanOf(answer.row);
	const all = span.to - span.from;
	const right = narrow ? 76 : RIGHT;
	const plot = Math.max(1, width - names - right);
	const x = (t: number) => names + ((t - span.from) / all) * plot;
	const own = { from: 0, to: all };
	const step = timeStep(own, plot / 110);
	const height = HEAD + lines.length * ROW + 4;
	const ink2 = token("--ink-2");
	const ink3 = token("--ink-3");
	return (
		<div ref={holder} className="waterfall" style={{ minHeight: height }}>
			{width > 0 ? (
				<svg width={width} height={height} fontSize="12" role="img" aria-label={label(lines, all)}>
					<title>Time by layer</title>
					{ticks(own, step).map((t) => (
						<g key={t}>
							<line x1={x(span.from + t)} x2={x(span.from + t)} y1={HEAD - 4} y2={height} stroke={token("--grid")} />
							<text x={x(span.from + t) + 3} y={14} fill={ink3} fontSize="11">
								{t === 0 ? "0" : axis(t, step)}
							</text>
						</g>
					))}
					<text x={width - 10} y={14} fill={ink3} fontSize="11" textAnchor="end">
						own time
					</text>
					{lines.map((line, i) => {
						const top = HEAD + i * ROW;
						const indent = 8 + Math.min(line.depth, 8) * 10;
						const color = colorOf("layer", line.layer, theme);
						return (
							<g key={`${line.depth} ${line.layer} ${line.name}`}>
								<rect x={indent} y={top + 6} width={9} height={9} rx={2} fill={color} />
								<text x={indent + 15} y={top + 15} fill={token("--ink")}>
									{cut(`${line.layer}`, 10)}
									<tspan fill={ink2} dx="6">
										{cut(visible(line.name), lettersFor(line, names - indent))}
									</tspan>
									{line.visits.length > 1 ? (
										<tspan fill={ink3} dx="5">
											×{line.visits.length}
										</tspan>
									) : null}
								</text>
								{line.visits.map((visit, n) => (
									<rect
										key={n}
										x={x(visit.t)}
										y={top + 3}
										width={Math.max(1.5, x(visit.t + visit.dur) - x(visit.t))}
										height={ROW - 7}
										rx={1.5}
										fill={color}
										onPointerMove={(event) => setHover({ line, visit, x: event.clientX, y: event.clientY })}
										onPointerLeave={() => setHover(null)}
									/>
								))}
								<text x={narrow ? width - 8 : width - 76} y={top + 15} fill={token("--ink")} textAnchor="end">
									{line.self === null ? "" : duration(line.self)}
								</text>
								<text x={width - 10} y={top + 15} fill={ink3} textAnchor="end">
									{line.self === null || narrow ? "" : percent(line.self / all)}
								</text>
							</g>
						);
					})}
				</svg>
			) : null}
			{hover ? (
				<Tip x={hover.x} y={hover.y}>
					<div className="head">
						<b>{hover.line.layer}</b> {visible(hover.line.name)}
					</div>
					<TipRows
						rows={[
							{ label: "after", value: bothDurations(hover.visit.t - span.from) },
							{ label: "took", value: bothDurations(hover.visit.dur) },
							...(hover.visit.note ? [{ label: "", value: visible(hover.visit.note) }] : []),
						]}
					/>
				</Tip>
			) : null}
		</div>
	);
}

export function axis(t: number, step: number): string {
	return t < 1e9 ? duration(t) : time(t, step);
}

/** Letters of a name that fit into so many pixels, next to its layer and the number of its visits. */
function lettersFor(line: Pick<Line, "layer" | "visits">, room: number): number {
	const visits = line.visits.length > 1 ? 5 + (1 + String(line.visits.length).length) * 7 : 0;
	return Math.floor((room - 26 - line.layer.length * 6.6 - visits) / 6.4);
}

export function cut(text: string, most: number): string {
	return text.length <= most ? text : most < 2 ? "" : `${text.slice(0, most - 1)}…`;
}

function label(lines: readonly Line[], all: number): string {
	const parts = lines.map((line) => `${line.layer} ${line.name} ${duration(line.self ?? 0)}`);
	return `${duration(all)} in all: ${parts.join(", ")}`;
}
