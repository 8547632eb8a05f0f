// A result as a table of which only the rows in sight exist.

import { type KeyboardEvent, useMemo, useRef, useState } from "react";
import type { Columns } from "../../api/arrow";
import { bytes, duration, exactTime, visible } from "../../lib/format";
import { Link } from "../link";
import { Empty } from "../states";
import { useSize } from "../useSize";
import { contentHeight, scrollFor, sliceAt } from "../virtual";
import { cellText, sortedRows, tsv, widths } from "./cells";
import { isNumeric, isTime, unitOf } from "./plot";

const ROW = 24;
/** Longer texts are cut. */
const LONGEST = 400;

/** A value as people read it, where it is a time and that is wanted. */
function shown(name: string, text: string, since: number | undefined): string {
	if (since !== undefined && isTime(name)) return exactTime(Number(text) - since);
	if (since !== undefined && unitOf(name) === "duration") return duration(Number(text));
	if (since !== undefined && unitOf(name) === "bytes") return bytes(Number(text));
	return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

interface Props {
	data: Columns;
	/** A row that has a request was opened. */
	onOpen?: (rid: number) => void;
	say: (text: string) => void;
	/** Times, durations and bytes as people read them: points in time since this one, the session's start on the clock of its
	 * tables. Without it every value stands as it is. */
	since?: number | undefined;
}

export function ResultTable({ data, onOpen, say, since }: Props) {
	const body = useRef<HTMLDivElement>(null);
	const { height } = useSize(body);
	const [scroll, setScroll] = useState(0);
	const [sort, setSort] = useState<{ name: string; down: boolean } | null>(null);
	const [selected, setSelected] = useState<{ from: number; to: number } | null>(null);
	const order = useMemo(() => sortedRows(data, sort), [data, sort]);
	const columns = useMemo(() => widths(data), [data]);
	const slice = sliceAt(scroll, height, data.rows, ROW);
	const template = columns.map((w) => `${w}px`).join(" ");
	const width = columns.reduce((sum, w) => sum + w, 0);

	const select = (index: number, extend: boolean) => {
		const to = Math.min(Math.max(index, 0), data.rows - 1);
		setSelected((before) => ({ from: extend && before ? before.from : to, to }));
		const wanted = scrollFor(to, body.current?.scrollTop ?? 0, height - ROW, data.rows, ROW);
		if (wanted !== null) body.current?.scrollTo({ top: wanted });
	};
	const copy = () => {
		const first = selected ? Math.min(selected.from, selected.to) : 0;
		const last = selected ? Math.max(selected.from, selected.to) : data.rows - 1;
		navigator.clipboard.writeText(tsv(data, [...order.slice(first, last + 1)])).then(
			() => say(`${last - first + 1} rows copied`),
			() => say("the browser did not let the page copy"),
		);
	};
	const open = (index: number) => {
		const row = order[index];
		const rid = row === undefined || !data.has("rid") ? Number.NaN : (data.f64("rid")[row] ?? Number.NaN);
		if (Number.isFinite(rid)) onOpen?.(rid);
	};
	const onKey = (event: KeyboardEvent) => {
		const page = Math.floor(height / ROW);
		const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
		const by = steps[event.key];
		if (by !== undefined) select((selected?.to ?? -1) + by, event.shiftKey);
		else if (event.key === "Home") select(0, event.shiftKey);
		else if (event.key === "End") select(data.rows - 1, event.shiftKey);
		else if (event.key === "Enter" && selected) open(selected.to);
		else if ((event.key === "c" && !event.altKey && !getSelection()?.toString()) || event.key === "y") copy();
		else return;
		event.preventDefault();
		event.stopPropagation();
	};
	if (data.names.length === 0) return <Empty title="No columns">The statement has no result.</Empty>;
	const rows: number[] = [];
	for (let i = slice.first; i < slice.end; i += 1) rows.push(i);
	const numeric = data.names.map((name) => isNumeric(data, name));
	return (
		// biome-ignore lint/a11y/useSemanticElements: a table of which few rows exist cannot be a table element
		<div
			className="result-table"
			role="grid"
			aria-rowcount={data.rows}
			aria-label="Result"
			tabIndex={0}
			onKeyDown={onKey}
			ref={body}
			onScroll={(event) => setScroll(event.currentTarget.scrollTop)}
		>
			{/* biome-ignore lint/a11y/useSemanticElements: see above */}
			{/* biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus */}
			<div className="result-head" role="row" style={{ gridTemplateColumns: template, minWidth: width }}>
				{data.names.map((name, i) => (
					// biome-ignore lint/a11y/useSemanticElements: see above
					// biome-ignore lint/a11y/useFocusableInteractive: the button inside has it
					<div
						key={`${i} ${name}`}
						role="columnheader"
						className={numeric[i] ? "number" : undefined}
						aria-sort={sort?.name === name ? (sort.down ? "descending" : "ascending") : "none"}
					>
						<button
							type="button"
							title={`Sort by ${visible(name)}`}
							onClick={() =>
								setSort(sort?.name === name ? (sort.down ? { name, down: false } : null) : { name, down: true })
							}
						>
							{visible(name)}
							{sort?.name === name ? (sort.down ? " ↓" : " ↑") : ""}
						</button>
					</div>
				))}
			</div>
			{data.rows === 0 ? <Empty title="No rows">The statement is right, and found nothing.</Empty> : null}
			<div style={{ height: contentHeight(data.rows, ROW), minWidth: width, position: "relative" }}>
				<div className="result-rows" style={{ transform: `translateY(${slice.top}px)` }}>
					{rows.map((index) => {
						const row = order[index] ?? 0;
						const on =
							selected !== null &&
							index >= Math.min(selected.from, selected.to) &&
							index <= Math.max(selected.from, selected.to);
						return (
							// biome-ignore lint/a11y/useSemanticElements: see above
							// biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus
							// biome-ignore lint/a11y/useKeyWithClickEvents: keys of the grid do the same
							<div
								key={index}
								role="row"
								aria-rowindex={index + 1}
								aria-selected={on}
								className="result-row"
								style={{ gridTemplateColumns: template }}
								onClick={(event) => select(index, event.shiftKey)}
								onDoubleClick={() => open(index)}
							>
								{data.names.map((name, i) => {
									const text = cellText(data, name, row);
									const number = numeric[i] ? " number" : "";
									const rid = name === "rid" && text !== null ? Number(text) : Number.NaN;
									return (
										// biome-ignore lint/a11y/useSemanticElements: see above
										// biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus
										<div
											key={`${i} ${name}`}
											role="gridcell"
											className={text === null ? `faint${number}` : numeric[i] ? "number" : "cut"}
											title={text === null ? "null" : visible(text)}
										>
											{text === null ? (
												"null"
											) : Number.isFinite(rid) ? (
												<Link to={{ view: "request", rid }} title="Open this request">
													{text}
												</Link>
											) : (
												<bdi>{visible(shown(name, text, numeric[i] ? since : undefined))}</bdi>
											)}
										</div>
									);
								})}
							</div>
						);
					})}
				</div>
			</div>
		</div>
	);
}
