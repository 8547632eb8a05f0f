import { type ReactNode, useMemo } from "react";
import type { Columns } from "../../api/arrow";
import { Legend, type LegendEntry } from "../../components/legend";
import { Panel, Shown } from "../../components/panel";
import type { Pointed } from "../../components/plotframe";
import { Segmented } from "../../components/segmented";
import { TimeChart } from "../../components/timechart";
import { TipRows } from "../../components/tip";
import { colorOf, ramp, type Theme } from "../../lib/color";
import { bothDurations, bytes, counted, duration, exact, exactTime, time, visible } from "../../lib/format";
import { panSpan, type Span, zoomSpan } from "../../lib/scale";
import { useShortcut } from "../../state/keys";
import type { Resource } from "../../state/resource";
import { useSession, useShown } from "../../state/session";
import { store, toggleFilter, usePage, useParam } from "../../state/store";
import { useTheme } from "../../state/theme";
import { type Accesses, busiest, cellAt, cellSpan, nearest, neighbor } from "./accesses";
import { type ColorBy, paintCells, paintPoints } from "./paint";
import { FILE_BOUNDS, PART, partText, usePart } from "./part";

const BYS: readonly (readonly [ColorBy, string])[] = [
	["kind", "read/write"],
	["latency", "latency"],
	["thread", "thread"],
];

/** Threads that the key names; the others have their colors all the same. */
const NAMED = 10;

interface Props {
	of: Resource<Columns>;
	accesses: Accesses | null;
	path: string | null;
	names: ReadonlyMap<number, string>;
	height: number;
}

export function Plot({ of, accesses, path, names, height }: Props) {
	const { span } = useShown();
	const { bounds } = useSession();
	const { rid } = usePage();
	const theme = useTheme();
	const [param, setBy] = useParam("color", "kind");
	const by = BYS.find(([id]) => id === param)?.[0] ?? "kind";
	const what = accesses?.what ?? null;
	const name = (tid: number) => `${visible(names.get(tid) ?? "thread")} ${tid}`;

	const draw = useMemo(() => {
		if (!what) return null;
		return what.mode === "points" ? paintPoints(what, by, theme, rid) : paintCells(what, by, theme);
	}, [what, by, theme, rid]);

	const part = usePart();
	const shown = accesses?.offsets ?? null;
	const show = (next: Span | null) => store.go({ params: { [PART]: next ? partText(next) : null } });
	const zoom = (by: number) => shown && show(zoomSpan(shown, (shown.from + shown.to) / 2, by, FILE_BOUNDS));
	const move = (by: number) => shown && show(panSpan(shown, by, FILE_BOUNDS));
	useShortcut(["W"], "Zoom in along the file's offsets", "File", () => zoom(0.5));
	useShortcut(["S"], "Zoom out along the file's offsets", "File", () => part && zoom(2));
	useShortcut(["A"], "Lower offsets", "File", () => part && move(-0.25));
	useShortcut(["D"], "Higher offsets", "File", () => part && move(0.25));
	useShortcut(["O"], "The whole file", "File", () => part && show(null));

	const brush = (times: Span | null, offsets: Span | null) => {
		store.go({
			...(times ? { window: { kind: "range", from: times.from, to: times.to } as const } : {}),
			...(offsets ? { params: { [PART]: partText(offsets) } } : {}),
		});
	};

	const step = (to: 1 | -1) => {
		if (what?.mode !== "points") return;
		const at = neighbor(what, rid, to);
		if (at >= 0) store.go({ rid: what.rid[at] ?? null });
	};
	useShortcut(["["], "The access of the file before", "File", () => step(-1));
	useShortcut(["]"], "The access of the file after", "File", () => step(1));

	const pick = (at: Pointed) => {
		if (!what) return;
		if (what.mode === "points") {
			const i = nearest(what, at.t, at.value, at.perX, at.perY);
			store.go({ rid: i >= 0 ? (what.rid[i] ?? null) : null });
		} else if (cellAt(what, at.t, at.value) >= 0) {
			// Cells hold many accesses: nearer, they become points.
			store.go({ window: { kind: "range", ...zoomSpan(span, at.t, 0.25, bounds) } });
		}
	};

	const tip = (at: Pointed): ReactNode => {
		if (!what) return null;
		if (what.mode === "points") {
			const i = nearest(what, at.t, at.value, at.perX, at.perY);
			if (i < 0) return null;
			return (
				<>
					<div className="head">{exactTime(what.t[i] ?? 0)}</div>
					<TipRows
						rows={[
							what.fault[i]
								? { label: "page fault", value: what.write[i] ? "by a write" : "by a read" }
								: { label: what.write[i] ? "write" : "read", value: counted(what.bytes[i] ?? 0, "byte") },
							{ label: "at offset", value: exact(what.offset[i] ?? 0) },
							{ label: "took", value: bothDurations(what.dur[i] ?? 0) },
							{ label: "thread", value: name(what.tid[i] ?? 0) },
						]}
					/>
				</>
			);
		}
		const row = cellAt(what, at.t, at.value);
		if (row < 0) return null;
		const cell = cellSpan(what, row);
		const wide = cell.time.to - cell.time.from;
		return (
			<>
				<div className="head">
					{exactTime(cell.time.from)} <span className="faint">+ {time(wide, wide)}</span>
				</div>
				<TipRows
					rows={[
						{ label: "offsets", value: `${bytes(cell.offsets.from)} to ${bytes(cell.offsets.to)}` },
						{ label: "reads", value: exact(what.reads[row] || 0) },
						{ label: "writes", value: exact(what.writes[row] || 0) },
						...((what.faults[row] || 0) > 0
							? [{ label: "of which page faults", value: exact(what.faults[row] || 0) }]
							: []),
						{ label: "longest", value: bothDurations(what.max[row] ?? 0) },
						{ label: "mostly", value: name(what.tid[row] ?? 0) },
					]}
				/>
				<div className="faint">click: nearer</div>
			</>
		);
	};

	return (
		<Panel
			title="Offsets over time"
			note={what ? noteOf(accesses) : undefined}
			head={what ? <Legend entries={legend(by, what, accesses?.figures.faults ?? 0, name, theme)} /> : undefined}
			end={
				<>
					{part ? (
						<button type="button" className="button" title="All offsets of the file (O)" onClick={() => show(null)}>
							Whole file
						</button>
					) : null}
					<Segmented label="Color by" value={by} options={BYS} onChange={setBy} />
				</>
			}
			picture={`offsets-${path?.split("/").at(-1) ?? "file"}`}
			className="file-plot"
		>
			<Shown
				of={of}
				height={height}
				empty={(data) => data.rows === 0}
				emptyTitle={`No reads, writes or page faults of this ${part ? "part of the file" : "file"} in this window`}
				emptyText={`Widen the window (0), ${part ? "show the whole file (O), " : ""}take a filter away, or choose another file. Mapped memory is read and written without calls; only its page faults are seen.`}
			>
				{() =>
					accesses && draw ? (
						<TimeChart
							label={`Offsets of reads, writes and page faults over time${path ? ` in ${path}` : ""}: ${described(accesses)}`}
							span={span}
							t={EMPTY}
							bucket={1}
							series={[]}
							height={height}
							format={bytes}
							binary
							range={[accesses.offsets.from, accesses.offsets.to]}
							sheet={{ draw, tip }}
							onBrush={brush}
							onPick={pick}
						/>
					) : null
				}
			</Shown>
		</Panel>
	);
}

const EMPTY = new Float64Array(0);

function noteOf(accesses: Accesses | null): string {
	if (!accesses) return "";
	const { what } = accesses;
	if (what.mode === "points") return `${counted(what.rows, "access", "accesses")}: a point each, larger for more bytes`;
	let sum = 0;
	for (let i = 0; i < what.rows; i += 1) sum += (what.reads[i] || 0) + (what.writes[i] || 0);
	return `${counted(sum, "access", "accesses")}: brighter where there are more; zoom in for single ones`;
}

/** The plot in words. */
function described({ what, figures }: Accesses): string {
	const found =
		what.mode === "points"
			? counted(what.rows, "access", "accesses")
			: counted(what.rows, "cell with accesses", "cells with accesses");
	return `${found}, ${bytes(figures.read)} read, ${bytes(figures.written)} written, ${counted(figures.faults, "page fault")}`;
}

function legend(
	by: ColorBy,
	what: Accesses["what"],
	faults: number,
	name: (tid: number) => string,
	theme: Theme,
): readonly LegendEntry[] {
	if (by === "kind") {
		return [
			{ label: "read", color: colorOf("series", "read", theme) },
			{ label: "written", color: colorOf("series", "written", theme) },
			...(faults > 0 ? [{ label: "page fault", color: colorOf("series", "faults", theme) }] : []),
		];
	}
	if (by === "latency") {
		return [1e3, 1e5, 1e7, 1e9].map((ns, i) => ({
			label: `${duration(ns)}${i === 3 ? " or more" : ""}`,
			color: ramp(0.15 + (0.85 * i) / 3, theme),
		}));
	}
	return busiest(what)
		.slice(0, NAMED)
		.map((tid) => ({
			label: name(tid),
			color: colorOf("thread", String(tid), theme),
			onPick: ({ alt }) => toggleFilter("tid", tid, alt),
		}));
}
