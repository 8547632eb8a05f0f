// The whole session in one strip, with the window in it: drag for another window, its edges to widen it, itself to
// move it.

import { type PointerEvent, useEffect, useMemo, useRef } from "react";
import { useSize } from "../components/useSize";
import { gridOf, seriesOf } from "../lib/buckets";
import { colorOf, ERROR } from "../lib/color";
import { count, duration, exactTime } from "../lib/format";
import { clampSpan, MIN_SPAN_NS, type Span, toPixel, toTime } from "../lib/scale";
import { useColumns, useSession, useShown } from "../state/session";
import { store } from "../state/store";
import { useTheme } from "../state/theme";

type Grab = "new" | "move" | "left" | "right";

export function Minimap() {
	const { bounds } = useSession();
	const { span } = useShown();
	const theme = useTheme();
	const holder = useRef<HTMLDivElement>(null);
	const canvas = useRef<HTMLCanvasElement>(null);
	const { width, height } = useSize(holder);
	const tiles = useColumns(
		width > 0
			? { path: "tiles", params: { by: "none" }, windowed: false, pixels: Math.ceil(width / 2 / 64) * 64 }
			: null,
	);

	const bars = useMemo(() => {
		if (!tiles.data) return null;
		const grid = gridOf(tiles.data);
		return { grid, calls: seriesOf(tiles.data, grid, "calls"), errors: seriesOf(tiles.data, grid, "errors") };
	}, [tiles.data]);

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
		const tall = new Float64Array(columns);
		const failed = new Uint8Array(columns);
		let top = 0;
		for (let i = 0; i < bars.grid.length; i += 1) {
			const calls = bars.calls[i] ?? 0;
			if (calls === 0) continue;
			const t = bars.grid.t[i] ?? 0;
			const first = Math.max(0, Math.floor(toPixel(t, bounds, columns)));
			const last = Math.min(
				columns - 1,
				Math.max(first, Math.ceil(toPixel(t + bars.grid.bucket, bounds, columns)) - 1),
			);
			for (let column = first; column <= last; column += 1) {
				tall[column] = Math.max(tall[column] ?? 0, calls);
				if ((bars.errors[i] ?? 0) > 0) failed[column] = 1;
			}
			top = Math.max(top, calls);
		}
		if (top === 0) return;
		for (let column = 0; column < columns; column += 1) {
			const calls = tall[column] ?? 0;
			if (calls === 0) continue;
			// The root, so that quiet parts beside a loud one can still be seen.
			const high = Math.max(1, Math.round(Math.sqrt(calls / top) * (height - 7)));
			context.fillStyle = colorOf("series", "calls", theme);
			context.fillRect(column, height - high, 1, high);
			if (failed[column]) {
				context.fillStyle = ERROR[theme];
				context.fillRect(column, 0, 1, 3);
			}
		}
	}, [bars, bounds, width, height, theme]);

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
			title={`Calls over the whole session${bars ? ` (at most ${count(Math.max(...bars.calls, 0))} in a bar); red marks on top: errors` : ""}. Drag for a window.`}
			onPointerDown={grab("new")}
			onPointerMove={move}
			onPointerUp={drop}
			onPointerCancel={drop}
			onDoubleClick={() => store.go({ window: { kind: "all" } })}
		>
			<canvas ref={canvas} />
			{width > 0 && !whole ? (
				<div className="frame" style={{ left, width: Math.max(3, right - left) }} onPointerDown={grab("move")}>
					<div className="grip left" onPointerDown={grab("left")} />
					<div className="grip right" onPointerDown={grab("right")} />
				</div>
			) : null}
		</div>
	);
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
