// Where the time went: by file, call, layer and thread, side by side.

import type { MouseEvent } from "react";
import type { TilesBy } from "../../api/session";
import { Link } from "../../components/link";
import { Panel, Shown } from "../../components/panel";
import { Path, Text } from "../../components/text";
import { useThingMenu } from "../../components/useThingMenu";
import { colorOf, type Kind } from "../../lib/color";
import type { ListMember } from "../../lib/filters";
import { duration, exactDuration, percent } from "../../lib/format";
import { meaningOf } from "../../lib/layers";
import { isThing, nameOf, ranked, rowKey, type Sum, sumsOf, type Thing, thingOf } from "../../lib/sums";
import { useColumns } from "../../state/session";
import { useRestedPage } from "../../state/store";
import { useTheme } from "../../state/theme";

const ROWS = 5;
/** As many as the card of files asks for: one question for both. */
const RANKED = 12;
/** Buckets of a part of the session: whole buckets are counted, so that at most one in so many is too much. */
const PARTS = 256;

interface Dimension {
	by: TilesBy | "path";
	member: ListMember;
	title: string;
	/** What stands for the calls without one. */
	none: string;
}

const DIMENSIONS: readonly Dimension[] = [
	{ by: "path", member: "full_path", title: "Files", none: "calls without a path" },
	{ by: "syscall", member: "syscall", title: "Calls", none: "none" },
	{ by: "layer", member: "layer", title: "Layers", none: "none" },
	{ by: "thread", member: "tid", title: "Threads", none: "none" },
];

export function Where() {
	const { open, menu } = useThingMenu();
	return (
		<Panel
			title="Where the time went"
			note="time in calls and page faults, summed over threads"
			end={
				<Link className="button plain" to={{ view: "flame" }} title="The same as one picture">
					Flame graph
				</Link>
			}
		>
			<div className="where">
				{DIMENSIONS.map((dimension) => (
					<Column key={dimension.by} dimension={dimension} open={open} />
				))}
			</div>
			{menu}
		</Panel>
	);
}

interface ColumnProps {
	dimension: Dimension;
	open: (thing: Thing, event: MouseEvent) => void;
}

function Column({ dimension, open }: ColumnProps) {
	return dimension.by === "path" ? (
		<Paths dimension={dimension} open={open} />
	) : (
		<Tiles by={dimension.by} dimension={dimension} open={open} />
	);
}

/** A database's journal may be another file for each transaction, so files count by their paths. */
function Paths({ dimension, open }: ColumnProps) {
	const top = useColumns({
		path: "top",
		params: { by: "path", sort: "time_ns", limit: RANKED, faults: 1, together: 1 },
		turn: "lists",
	});
	return (
		<div className="where-file">
			<Shown of={top} height={(ROWS + 2) * 26} empty={(data) => data.rows === 0}>
				{(data) => (
					<Rows
						dimension={dimension}
						sums={ranked(data)}
						total={(data.metaNumber("time_ns") ?? 0) + (data.metaNumber("fault_ns") ?? 0)}
						open={open}
					/>
				)}
			</Shown>
		</div>
	);
}

function Tiles({ by, dimension, open }: ColumnProps & { by: TilesBy }) {
	const whole = useRestedPage().window.kind === "all";
	const tiles = useColumns({
		path: "tiles",
		params: { by, top: ROWS, busy: 1, faults: 1 },
		pixels: whole ? 1 : PARTS,
		turn: "lists",
	});
	return (
		<div className={`where-${by}`}>
			<Shown of={tiles} height={(ROWS + 2) * 26} empty={(data) => data.rows === 0}>
				{(data) => {
					const sums = sumsOf(data);
					const total = sums.reduce((all, sum) => all + sum.busy, 0);
					return <Rows dimension={dimension} sums={sums} total={total} open={open} />;
				}}
			</Shown>
		</div>
	);
}

interface RowsProps extends ColumnProps {
	sums: readonly Sum[];
	/** Of all calls and page faults. */
	total: number;
}

function Rows({ dimension, sums, total, open }: RowsProps) {
	const theme = useTheme();
	const { by, member, title, none } = dimension;
	const shown = sums.filter((sum) => !sum.rest && sum.busy > 0).slice(0, ROWS);
	const rest = total - shown.reduce((all, sum) => all + sum.busy, 0);
	const color = (sum: Sum) =>
		by === "syscall" || by === "layer" ? colorOf(by as Kind, sum.key, theme) : colorOf("series", "time", theme);
	return (
		<table className="figures where-rows">
			<thead>
				<tr>
					<th>{title}</th>
					<th className="number">Time</th>
					<th className="number">Share</th>
				</tr>
			</thead>
			<tbody>
				{shown.map((sum) => (
					<tr
						key={rowKey(sum)}
						className={isThing(sum) ? "link" : undefined}
						title={by === "layer" ? (meaningOf(sum.label ?? "") ?? undefined) : undefined}
						onClick={(event) => isThing(sum) && open(thingOf(sum, member), event)}
					>
						<td>
							<span
								className="bar"
								style={{
									width: `calc(${total > 0 ? (sum.busy / total) * 100 : 0}% - 10px)`,
									background: color(sum),
								}}
							/>
							{!isThing(sum) ? (
								<span className="faint">{sum.key === null && sum.directory === undefined ? none : sum.label}</span>
							) : (
								<button type="button" className="plain-name">
									{by === "path" && sum.directory === undefined ? <Path of={nameOf(sum)} /> : <Text of={sum.label} />}
									{by === "thread" ? <span className="faint"> {sum.key}</span> : null}
								</button>
							)}
							{by === "layer" ? <span className="quiet"> {meaningOf(sum.label ?? "")}</span> : null}
						</td>
						<td className="number" title={exactDuration(sum.busy)}>
							{duration(sum.busy)}
						</td>
						<td className="number">{percent(sum.busy / total)}</td>
					</tr>
				))}
				{rest > total * 1e-4 ? (
					<tr>
						<td className="faint">all others</td>
						<td className="number faint">{duration(rest)}</td>
						<td className="number faint">{percent(rest / total)}</td>
					</tr>
				) : null}
			</tbody>
		</table>
	);
}
