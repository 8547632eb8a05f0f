// The whole session in one strip, with the window in it: drag for another window, its edges to widen it, itself to
// move it.

import { type PointerEvent, useEffect, useMemo, useRef } from "react";
import { NowEdge } from "../components/now";
import { useSize } from "../components/useSize";
import { type Grid, gridOf, seriesByKey } from "../lib/buckets";
import { colorOf, ERROR } from "../lib/color";
import { duration, exactTime } from "../lib/format";
import { clampSpan, MIN_SPAN_NS, type Span, toPixel, toTime } from "../lib/scale";
import { useDiagnosis } from "../state/diagnosis";
import { stripPixels, useColumns, useSession, useShown, useSums } from "../state/session";
import { store } from "../state/store";
import { token, useTheme } from "../state/theme";

/** Room for marks above the bars. */
const MARKS = 5;

type Grab = "new" | "move" | "left" | "right";

export function Minimap() {
	const { bounds, about, live } = useSession();
	const { span } = useShown();
	const theme = useTheme();
	const holder = useRef<HTMLDivElement>(null);
	const canvas = useRef<HTMLCanvasElement>(null);
	const { width, height } = useSize(holder);
	const pixels = stripPixels();
	const tiles = useSums({ windowed: false });
	// Errors are looked for in the rows, which is too much to do again and again as a recording grows.
	const errors = useColumns(tiles.data && !live ? { path: "errors", windowed: false, pixels, turn: "later" } : null);
	const diagnosis = useDiagnosis(live ? tiles.data !== undefined : errors.data !== undefined);

	const bars = useMemo(() => {
		if (!tiles.data) return null;
		const grid = gridOf(tiles.data);
		return { grid, purposes: seriesByKey(tiles.data, grid, "busy_ns") };
	}, [tiles.data]);
	const failed = useMemo(() => {
		const flags = errors.data?.flags("failed") ?? [];
		const times = errors.data?.f64("t") ?? [];
		return Array.from(times).filter((_, i) => flags[i]);
	}, [errors.data]);
	const pins = useMemo(
		() =>
			(diagnosis.data?.findings ?? [])
				.filter((finding) => finding.severity !== "low")
				.flatMap((finding) => finding.examples.slice(0, 1).map((e) => e.ts_ns - about.started_at_ns)),
		[diagnosis.data, about.started_at_ns],
	);

	useEffect(() => {
		const target = canvas.current;
		const context = target?.getContext("2d");
		if (!target || !context || width === 0) return;
		const ratio = window.devicePixelRatio || 1;
		target.width = Math.round(width * ratio);
		target.height = Math.round(height * ratio);
		context.scale(ratio, ratio);
		if (!bars) return;
		// By columns of pixels: bars of fractions of a pixel would shimmer.
		const columns = Math.round(width);
		const column = (t: number) => Math.max(0, Math.min(columns - 1, Math.floor(toPixel(t, bounds, columns))));
		const room = height - MARKS - 2;
		let top = 0;
		for (let i = 0; i < bars.grid.length; i += 1)
			top = Math.max(
				top,
				bars.purposes.reduce((all, p) => all + (p.values[i] ?? 0), 0),
			);
		for (let i = 0; i < bars.grid.length && top > 0; i += 1) {
			const sum = bars.purposes.reduce((all, p) => all + (p.values[i] ?? 0), 0);
			if (sum <= 0) continue;
			const t = bars.grid.t[i] ?? 0;
			const first = column(t);
			const last = Math.max(first, Math.ceil(toPixel(t + bars.grid.bucket, bounds, columns)) - 1);
			// The root, so that quiet parts beside a loud one can still be seen.
			const high = Math.max(1, Math.sqrt(sum / top) * room);
			let y = height;
			for (const { key, values } of bars.purposes) {
				const part = ((values[i] ?? 0) / sum) * high;
				if (part <= 0) continue;
				context.fillStyle = colorOf("purpose", key, theme);
				context.fillRect(first, y - part, last - first + 1, part);
				y -= part;
			}
		}
		context.fillStyle = ERROR[theme];
		for (const t of failed) context.fillRect(column(t), 0, 2, 3);
		context.fillStyle = token("--warn");
		for (const t of pins) {
			const x = column(t) + 0.5;
			context.beginPath();
			context.moveTo(x - 4, 0);
			context.lineTo(x + 4, 0);
			context.lineTo(x, MARKS);
			context.fill();
		}
	}, [bars, failed, pins, bounds, width, height, theme]);

	const drag = useRef<{ grab: Grab; start: number; before: Span } | null>(null);
	const timeAt = (event: PointerEvent) => {
		const box = holder.current?.getBoundingClientRect();
		return box ? toTime(event.clientX - box.left, bounds, box.width) : 0;
	};
	const grab = (kind: Grab) => (event: PointerEvent<HTMLDivElement>) => {
		if (event.button !== 0) return;
		event.stopPropagation();
		holder.current?.setPointerCapture(event.pointerId);
		drag.current = { grab: kind, start: timeAt(event), before: span };
	};
	const move = (event: PointerEvent) => {
		const held = drag.current;
		if (!held) return;
		const now = timeAt(event);
		if (held.grab === "new" && Math.abs(toPixel(now, bounds, width) - toPixel(held.start, bounds, width)) < 4) return;
		store.move({ kind: "range", ...dragged(held, now, bounds) });
	};
	const drop = () => {
		drag.current = null;
	};

	const left = Math.max(0, toPixel(span.from, bounds, width));
	const right = Math.min(width, toPixel(span.to, bounds, width));
	const whole = left <= 0.5 && right >= width - 0.5;
	return (
		<div
			className="minimap"
			ref={holder}
			role="img"
			aria-label={`The whole session, ${duration(bounds.to - bounds.from)}; shown: ${exactTime(span.from)} to ${exactTime(span.to)}`}
			aria-busy={bars === null}
			title={`Time in calls and page faults over the whole session by what they do: ${(bars?.purposes ?? []).map((p) => p.label).join(", ")}. On top: failed calls in red, findings as triangles. Drag for a window.`}
			onPointerDown={grab("new")}
			onPointerMove={move}
			onPointerUp={drop}
			onPointerCancel={drop}
			onDoubleClick={() => store.go({ window: { kind: "all" } })}
		>
			<canvas ref={canvas} />
			<NowEdge span={bounds} left={0} wide={width} known={bars ? endOf(bars.grid) : undefined} named />
			{width > 0 && !whole ? (
				<div className="frame" style={{ left, width: Math.max(3, right - left) }} onPointerDown={grab("move")}>
					<div className="grip left" onPointerDown={grab("left")} />
					<div className="grip right" onPointerDown={grab("right")} />
				</div>
			) : null}
		</div>
	);
}

/** The end of the last bucket. */
function endOf(grid: Grid): number | undefined {
	const last = grid.t.at(-1);
	return last === undefined ? undefined : last + grid.bucket;
}

function dragged(held: { grab: Grab; start: number; before: Span }, now: number, bounds: Span): Span {
	const { before, start } = held;
	const inside = (t: number) => Math.min(Math.max(t, bounds.from), bounds.to);
	if (held.grab === "new")
		return clampSpan({ from: inside(Math.min(start, now)), to: inside(Math.max(start, now)) }, bounds);
	if (held.grab === "left")
		return { from: inside(Math.min(before.from + now - start, before.to - MIN_SPAN_NS)), to: before.to };
	if (held.grab === "right")
		return { from: before.from, to: inside(Math.max(before.to + now - start, before.from + MIN_SPAN_NS)) };
	return clampSpan({ from: before.from + now - start, to: before.to + now - start }, bounds);
}
