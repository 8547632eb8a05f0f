import { type KeyboardEvent, type PointerEvent, useEffect, useMemo, useReducer, useRef, useState } from "react";
import { type ApiError, asApiError } from "../../api/client";
import { columns as askColumns, filterText, selectionText, sessionPath } from "../../api/session";
import { Empty, ErrorState, Progress } from "../../components/states";
import { useSize } from "../../components/useSize";
import { contentHeight, scrollFor, sliceAt } from "../../components/virtual";
import { colorOf } from "../../lib/color";
import { counted, exact, visible } from "../../lib/format";
import { useFailures } from "../../state/failures";
import { useShortcut } from "../../state/keys";
import { client } from "../../state/server";
import { useSession, useShown } from "../../state/session";
import { store, usePage } from "../../state/store";
import { useTheme } from "../../state/theme";
import { cell, nextSort, type Sums, type TableColumn, widthsOf } from "./columns";
import { type Page, Pages } from "./pages";

const ROW = 24;
/** Rows of a running recording are looked at again this often. */
const LIVE_MS = 1000;

interface Props {
	columns: readonly TableColumn[];
	sort: string;
	setSort: (sort: string) => void;
	setTotal: (total: number) => void;
	/** Rows were selected: what they are together; null for one row or none. */
	setSums: (sums: Sums | null) => void;
	say: (text: string) => void;
}

interface Selected {
	from: number;
	to: number;
}

export function Grid({ columns, sort, setSort, setTotal, setSums, say }: Props) {
	const page = usePage();
	const session = useSession();
	const { span } = useShown();
	const theme = useTheme();
	const failed = useFailures();
	const body = useRef<HTMLDivElement>(null);
	const { width: room, height } = useSize(body);
	const [scroll, setScroll] = useState(0);
	const [total, setRows] = useState<number | null>(null);
	const [error, setError] = useState<ApiError | null>(null);
	const [selected, setSelected] = useState<Selected | null>(null);
	const [, redraw] = useReducer((n: number) => n + 1, 0);
	/** The row of a click that was made before the row was there. */
	const wanted = useRef<number | null>(null);
	const liveTurn = useTurn(session.live && page.window.kind !== "range");

	const ids = [...new Set([...columns.map((c) => c.id), "rid", "ts_ns", "dur_ns", "syscall", "errno", "bytes"])].join(
		",",
	);
	const window = page.window.kind === "all" ? null : span;
	const query = selectionText({ span: window, filter: page.filter }, { sort, columns: ids });
	const key = `${session.id} ${sort} ${filterText(page.filter)} ${page.window.kind === "range" ? query : page.window.kind}`;
	const newest = useRef(query);
	newest.current = query;

	const openWanted = useRef(() => {});
	// biome-ignore lint/correctness/useExhaustiveDependencies: `key` stands for what is asked
	const pages = useMemo(() => {
		setError(null);
		return new Pages(
			(first, limit, signal) =>
				askColumns(client, sessionPath(session.id, `/events${newest.current}&offset=${first}&limit=${limit}`), signal),
			(arrived: Page) => {
				const all = arrived.columns.metaNumber("total");
				if (all !== null) {
					setRows(all);
					setTotal(all);
				}
				setError(null);
				redraw();
				openWanted.current();
			},
			(problem) => setError(asApiError(problem)),
		);
	}, [key, ids, liveTurn]);
	useEffect(() => () => pages.clear(), [pages]);

	// Another question begins at its first row.
	// biome-ignore lint/correctness/useExhaustiveDependencies: `key` stands for what is asked
	useEffect(() => {
		body.current?.scrollTo({ top: 0 });
		setSelected(null);
		wanted.current = null;
	}, [key]);

	const rows = total ?? 0;
	const slice = sliceAt(scroll, height, rows, ROW);
	useEffect(() => {
		pages.want(slice.first, Math.max(slice.end, slice.first + 1));
	});

	const ridAt = (index: number) => {
		const found = pages.row(index);
		const rid = found ? found.page.columns.f64("rid")[found.place] : undefined;
		return rid !== undefined && Number.isFinite(rid) ? rid : null;
	};
	const select = (index: number, extend: boolean) => {
		const to = Math.min(Math.max(index, 0), rows - 1);
		setSelected((before) => ({ from: extend && before ? before.from : to, to }));
		const wanted = scrollFor(to, body.current?.scrollTop ?? 0, height, rows, ROW);
		if (wanted !== null) body.current?.scrollTo({ top: wanted });
	};
	// Rows arrive while they are selected: their sums follow.
	const sums = selected && selected.from !== selected.to ? sumsOf(pages, selected) : null;
	const sumsKey = sums ? JSON.stringify(sums) : "";
	// biome-ignore lint/correctness/useExhaustiveDependencies: `sumsKey` stands for the sums
	useEffect(() => setSums(sums), [sumsKey]);
	const copy = () => {
		if (!selected) return;
		const first = Math.min(selected.from, selected.to);
		const last = Math.max(selected.from, selected.to);
		const lines = [columns.map((c) => c.id).join("\t")];
		for (let i = first; i <= last; i += 1) {
			const found = pages.row(i);
			if (found) lines.push(columns.map((c) => cell(found.page.columns.column(c.id)?.get(found.place))).join("\t"));
		}
		// Rows that were scrolled out of memory would be missing without a word.
		const missing = last - first + 1 - (lines.length - 1);
		navigator.clipboard.writeText(`${lines.join("\n")}\n`).then(
			() =>
				say(
					`${counted(lines.length - 1, "row")} copied${missing > 0 ? `; ${exact(missing)} are not loaded: scroll to them first` : ""}`,
				),
			() => say("the browser did not let the page copy"),
		);
	};
	useShortcut(["c"], "Copy the selected rows", "Table", copy);
	const onKey = (event: KeyboardEvent) => {
		const at = selected?.to ?? -1;
		const step: Record<string, number> = {
			ArrowDown: 1,
			ArrowUp: -1,
			PageDown: Math.floor(height / ROW),
			PageUp: -Math.floor(height / ROW),
		};
		const by = step[event.key];
		if (by !== undefined) select(at + by, event.shiftKey);
		else if (event.key === "Home") select(0, event.shiftKey);
		else if (event.key === "End") select(rows - 1, event.shiftKey);
		else if (event.key === "Enter" && selected) open(selected.to);
		else if ((event.ctrlKey || event.metaKey) && event.key === "c" && !getSelection()?.toString()) copy();
		else return;
		event.preventDefault();
		event.stopPropagation();
	};
	/** Opens the call of a row; one that is still on its way opens when it is there. */
	const open = (index: number, known: number | null = null) => {
		const rid = known ?? ridAt(index);
		wanted.current = rid === null ? index : null;
		if (rid !== null) store.go({ rid });
	};
	openWanted.current = () => {
		if (wanted.current !== null && ridAt(wanted.current) !== null) open(wanted.current);
	};

	const drag = useRef(false);
	/** The call that was below the pointer: rows of a running recording move. */
	const pressed = useRef<number | null>(null);
	const down = (event: PointerEvent, index: number) => {
		if (event.button !== 0) return;
		drag.current = true;
		pressed.current = ridAt(index);
		select(index, event.shiftKey);
	};
	const widths = widthsOf(columns, room);
	const template = columns.map((c, i) => (c.path ? `minmax(${widths[i]}px, 1fr)` : `${widths[i]}px`)).join(" ");
	const width = widths.reduce((sum, w) => sum + w, 0);
	const shown: number[] = [];
	for (let i = slice.first; i < slice.end; i += 1) shown.push(i);
	const waiting = total === null || shown.some((i) => pages.row(i) === null);

	if (error && total === null) return <ErrorState error={error} />;
	return (
		// biome-ignore lint/a11y/useSemanticElements: a table of which few rows exist cannot be a table element
		<div
			className="grid"
			role="grid"
			aria-rowcount={rows}
			aria-label="Calls"
			aria-busy={waiting && error === null}
			tabIndex={0}
			onKeyDown={onKey}
			onPointerUp={() => {
				drag.current = false;
			}}
		>
			<Progress on={waiting && error === null} />
			<div className="grid-scroll" ref={body} onScroll={(event) => setScroll(event.currentTarget.scrollTop)}>
				{/* biome-ignore lint/a11y/useSemanticElements: see above */}
				{/* biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus */}
				<div className="grid-head" role="row" style={{ gridTemplateColumns: template, minWidth: width }}>
					{columns.map((column) => (
						// biome-ignore lint/a11y/useSemanticElements: see above
						// biome-ignore lint/a11y/useFocusableInteractive: the button inside has it
						<div
							key={column.id}
							role="columnheader"
							className={column.number ? "number" : undefined}
							aria-sort={sort === column.id ? "ascending" : sort === `-${column.id}` ? "descending" : "none"}
						>
							<button type="button" onClick={() => setSort(nextSort(sort, column.id))} title={`Sort by ${column.id}`}>
								{column.title}
								{sort === column.id ? " ↑" : sort === `-${column.id}` ? " ↓" : ""}
							</button>
						</div>
					))}
				</div>
				<div style={{ height: contentHeight(rows, ROW), minWidth: width, position: "relative" }}>
					<div className="grid-rows" style={{ transform: `translateY(${slice.top}px)` }}>
						{shown.map((index) => {
							const found = pages.row(index);
							const first = selected ? Math.min(selected.from, selected.to) : -1;
							const last = selected ? Math.max(selected.from, selected.to) : -2;
							const on = index >= first && index <= last;
							return (
								// biome-ignore lint/a11y/useSemanticElements: see above
								// biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus
								// biome-ignore lint/a11y/useKeyWithClickEvents: Enter in the grid opens the selected row
								<div
									key={index}
									role="row"
									aria-rowindex={index + 1}
									aria-selected={on}
									className={found && page.rid !== null && ridAt(index) === page.rid ? "grid-row open" : "grid-row"}
									style={{ gridTemplateColumns: template, minWidth: width }}
									onPointerDown={(event) => down(event, index)}
									onPointerEnter={() => drag.current && select(index, true)}
									onClick={(event) =>
										!event.shiftKey && selected?.from === selected?.to && open(index, pressed.current)
									}
								>
									{columns.map((column) => (
										<Cell key={column.id} column={column} found={found} theme={theme} failed={failed} />
									))}
								</div>
							);
						})}
					</div>
				</div>
				{total === 0 ? (
					<Empty title="No calls like these in this window">Widen the window (0) or take a filter away.</Empty>
				) : null}
			</div>
			{error ? (
				<div className="grid-error">
					{error.what}. {error.next}
				</div>
			) : null}
		</div>
	);
}

/** What the selected rows are together, as far as they are there. */
function sumsOf(pages: Pages, { from, to }: Selected): Sums {
	const [first, last] = [Math.min(from, to), Math.max(from, to)];
	const sums: Sums = { rows: last - first + 1, known: 0, time: 0, longest: 0, bytes: 0, errors: 0 };
	for (let i = first; i <= last; i += 1) {
		const found = pages.row(i);
		if (!found) continue;
		const value = (name: string) => found.page.columns.f64(name)[found.place] || 0;
		sums.known += 1;
		sums.time += value("dur_ns");
		sums.longest = Math.max(sums.longest, value("dur_ns"));
		sums.bytes += value("bytes");
		if (found.page.columns.column("errno")?.get(found.place)) sums.errors += 1;
	}
	return sums;
}

interface CellProps {
	column: TableColumn;
	found: { page: Page; place: number } | null;
	theme: "dark" | "light";
	failed: ReturnType<typeof useFailures>;
}

function Cell({ column, found, theme, failed }: CellProps) {
	const role = "gridcell";
	if (!found) return <div role={role} className="grid-wait" />;
	const value: unknown = found.page.columns.column(column.id)?.get(found.place);
	if (value === null || value === undefined)
		return <div role={role} className={column.number ? "number faint" : "faint"} />;
	if (column.number) {
		const n = Number(value);
		return (
			<div role={role} className="number" title={column.show ? exact(n) : undefined}>
				{column.show ? column.show(n) : String(value)}
			</div>
		);
	}
	const text = visible(String(value));
	const danger = column.id === "errno" && failed(textOf(found, "syscall"), String(value));
	const className = `${column.path ? "cut-start" : "cut"}${danger ? " danger" : ""}${column.path ? " mono" : ""}`;
	return (
		<div role={role} className={className} title={text}>
			{column.id === "syscall" ? (
				<span className="swatch" style={{ background: colorOf("syscall", text, theme) }} />
			) : null}
			<bdi dir={column.path ? "ltr" : undefined}>{text}</bdi>
		</div>
	);
}

function textOf({ page, place }: { page: Page; place: number }, name: string): string | null {
	const value: unknown = page.columns.column(name)?.get(place);
	return value === null || value === undefined ? null : String(value);
}

/** Counts up while something is live. */
function useTurn(live: boolean): number {
	const [turn, setTurn] = useState(0);
	useEffect(() => {
		if (!live) return;
		const timer = setInterval(() => setTurn((n) => n + 1), LIVE_MS);
		return () => clearInterval(timer);
	}, [live]);
	return turn;
}
