import type { MouseEvent, ReactNode } from "react";
import { type Comparison, type DiffRow, type Metric, TABLES, type TableName } from "../../api/compare";
import { Link } from "../../components/link";
import { Panel } from "../../components/panel";
import { Segmented } from "../../components/segmented";
import { Empty } from "../../components/states";
import { Path, Text } from "../../components/text";
import { exact } from "../../lib/format";
import { store, useParam } from "../../state/store";
import { type Lead as LeadTo, leadOf, type OfProcesses, placeOf, type Sides } from "./leads";
import { changed, chosenRows, figureOf, METRICS, metricsOf, precise, shown, VERDICTS } from "./words";

/** More rows are found by searching. */
const MOST = 200;

interface TablesProps {
	comparison: Comparison;
	sides: Sides;
	processes: OfProcesses;
}

/** Differences by what calls were and worked on. */
export function Tables({ comparison, sides, processes }: TablesProps) {
	const [param, setTable] = useParam("table", "files");
	const [search, setSearch] = useParam("find", "");
	const [only, setOnly] = useParam("only", "");
	const [sort, setSort] = useParam("sort", "");
	const table = (TABLES.find(([id]) => id === param)?.[0] ?? "files") as TableName;
	const rows = comparison.tables[table] ?? [];
	const metrics = metricsOf(rows);
	const sorted = metrics.find((m) => m === sort) ?? null;
	const found = chosenRows(rows, search, only === "changed", sorted);
	return (
		<Panel
			title="Differences"
			note={`${exact(found.length)} of ${exact(rows.length)}`}
			end={
				<>
					<input
						className="field compare-find"
						type="search"
						aria-label="Find a row"
						placeholder="Find"
						value={search}
						onChange={(event) => setSearch(event.target.value)}
					/>
					<Segmented
						label="Rows"
						value={only === "changed" ? "changed" : "all"}
						options={[
							["all", "all"],
							["changed", "beyond noise"],
						]}
						onChange={(value) => setOnly(value === "changed" ? "changed" : "")}
					/>
				</>
			}
		>
			<div className="compare-tabs">
				<Segmented label="By" value={table} options={TABLES} onChange={setTable} />
			</div>
			{found.length === 0 ? (
				<Empty title={rows.length === 0 ? "Neither side has any" : "None of them"}>
					{rows.length === 0 ? "Nothing of this kind was recorded." : "Search for something else, or show all."}
				</Empty>
			) : (
				<div className="compare-table">
					<table className="figures">
						<thead>
							<tr>
								<th>{table === "files" ? "Path" : "Name"}</th>
								{metrics.map((metric) => (
									<th key={metric} className="number" aria-sort={sorted === metric ? "descending" : undefined}>
										<button
											type="button"
											title="Sort by how much it differs"
											onClick={() => setSort(sorted === metric ? "" : metric)}
										>
											{METRICS[metric]}
											{sorted === metric ? " ↓" : ""}
										</button>
									</th>
								))}
							</tr>
						</thead>
						<tbody>
							{found.slice(0, MOST).map((row) => (
								<Row
									key={`${row.name}\0${row.on ?? ""}`}
									row={row}
									metrics={metrics}
									table={table}
									sides={sides}
									processes={processes}
								/>
							))}
						</tbody>
					</table>
					{found.length > MOST ? <p className="faint compare-more">The first {MOST}: search for others.</p> : null}
				</div>
			)}
		</Panel>
	);
}

interface RowProps {
	row: DiffRow;
	metrics: readonly Metric[];
	table: TableName;
	sides: Sides;
	processes: OfProcesses;
}

function Row({ row, metrics, table, sides, processes }: RowProps) {
	const lead = leadOf(table, row, processes);
	// The link in the row opens itself, in a new tab if the reader asks for one.
	const open = (event: MouseEvent) => {
		if (lead && event.target instanceof Element && !event.target.closest("a")) store.go(placeOf(lead, sides));
	};
	return (
		<tr className={lead ? "link" : undefined} onClick={open}>
			<td>
				<Lead lead={lead} sides={sides}>
					{table === "files" ? <Path of={row.name} /> : <Text of={row.name} />}
				</Lead>{" "}
				{row.on ? (
					<span className="quiet">
						<Path of={row.on} />
					</span>
				) : null}
				{row.status === "both" ? null : <span className="badge compare-status">{row.status}</span>}
			</td>
			{metrics.map((metric) => {
				const figure = figureOf(row, metric);
				if (!figure) return <td key={metric} />;
				return (
					<td
						key={metric}
						className="number"
						title={`${precise(metric, figure.before)} → ${precise(metric, figure.after)}: ${VERDICTS[figure.verdict]}${figure.why ? `, ${figure.why}` : ""}`}
					>
						{figure.before === figure.after ? (
							<span className="faint">{shown(metric, figure.after)}</span>
						) : (
							<>
								{shown(metric, figure.before)} → {shown(metric, figure.after)}
								<br />
								<Mark figure={figure} />
							</>
						)}
					</td>
				);
			})}
		</tr>
	);
}

/** A name or a sentence that leads to the calls behind it. */
export function Lead({ lead, sides, children }: { lead: LeadTo | null; sides: Sides; children: ReactNode }) {
	return lead ? (
		<Link to={placeOf(lead, sides)} title={`Its calls in the session ${lead.side}`}>
			{children}
		</Link>
	) : (
		<span>{children}</span>
	);
}

/** By how much, and whether it is more than noise. */
export function Mark({ figure }: { figure: Parameters<typeof changed>[0] & { verdict: keyof typeof VERDICTS } }) {
	const sign = figure.verdict === "worse" ? "▲ " : figure.verdict === "better" ? "▼ " : "";
	return (
		<span className={`compare-mark ${figure.verdict}`}>
			{sign}
			{figure.before === figure.after && sign !== "" ? VERDICTS[figure.verdict] : changed(figure)}
			<span className="only-read"> {VERDICTS[figure.verdict]}</span>
		</span>
	);
}
