// The reader's own plots and tables: queries that were added as panels.

import { Link } from "../../components/link";
import { Panel, Shown } from "../../components/panel";
import { choiceParams } from "../../components/query/params";
import { ResultPlot } from "../../components/query/ResultPlot";
import { ResultTable } from "../../components/query/ResultTable";
import { useSql } from "../../components/query/useSql";
import { Empty } from "../../components/states";
import { useTall } from "../../components/useTall";
import { exact, visible } from "../../lib/format";
import { unheeded } from "../../lib/sql";
import { queries, type SavedQuery, useQueries } from "../../state/queries";
import { store, useRestedPage } from "../../state/store";
import "../../components/query/style.css";
import "./style.css";

/** More rows than a panel can show say nothing more. */
const ROWS = 5000;

export default function Panels() {
	const panels = useQueries().filter((query) => query.panel);
	if (panels.length === 0) {
		return (
			<Empty title="No panels yet">
				Write a query under <Link to={{ view: "sql" }}>SQL</Link> and choose “Add as panel”: its plot or table then
				stands here, for every session that you open with this browser.
			</Empty>
		);
	}
	return (
		<div className="panels">
			{panels.map((query, i) => (
				<Own key={query.id} query={query} first={i === 0} last={i === panels.length - 1} />
			))}
		</div>
	);
}

function Own({ query, first, last }: { query: SavedQuery; first: boolean; last: boolean }) {
	const result = useSql(query.sql, ROWS);
	const page = useRestedPage();
	const left = result.expanded ? unheeded(result.expanded, page.window.kind === "all", page.filter) : "";
	const height = useTall(240, 0.26);
	const name = visible(query.name);
	const tool = (label: string, sign: string, run: () => void, off = false) => (
		<button
			type="button"
			className="button plain"
			title={label}
			aria-label={`${label}: ${name}`}
			disabled={off}
			onClick={run}
		>
			{sign}
		</button>
	);
	return (
		<Panel
			title={name}
			className={query.wide ? "panel-wide" : ""}
			note={result.data ? [`${exact(result.data.rows)} rows`, left].filter((part) => part !== "").join("; ") : ""}
			end={
				<>
					{tool("Before the one before", "↑", () => queries.move(query.id, -1), first)}
					{tool("Behind the next", "↓", () => queries.move(query.id, 1), last)}
					{tool(query.wide ? "Half as wide" : "As wide as the page", "↔", () =>
						queries.change(query.id, { wide: !query.wide }),
					)}
					<Link
						className="button plain"
						title="Change it under SQL"
						to={{ view: "sql", params: { sql: query.sql, name: query.name, ...choiceParams(query.plot) } }}
					>
						Edit
					</Link>
					{tool("Take it away (the query stays saved)", "×", () => queries.change(query.id, { panel: false }))}
				</>
			}
			{...(query.plot.form === "table" ? {} : { picture: query.name })}
		>
			<Shown of={result} height={height}>
				{(data) =>
					query.plot.form === "table" ? (
						<div className="panels-table" style={{ height }}>
							<ResultTable data={data} say={() => {}} onOpen={(rid) => store.go({ view: "request", rid })} />
						</div>
					) : (
						<ResultPlot
							data={data}
							choice={query.plot}
							title={name}
							height={height - 30}
							follows={result.expanded?.follows === true}
						/>
					)
				}
			</Shown>
		</Panel>
	);
}
