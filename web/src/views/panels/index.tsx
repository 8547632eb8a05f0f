// Plots and tables made of queries: the reader's own, those of files that a team keeps, and a board to begin with.

import { useRef, useState } from "react";
import type { PanelFile } from "../../api/types";
import { Link } from "../../components/link";
import { Panel, Shown } from "../../components/panel";
import { saveText } from "../../components/query/cells";
import { choiceParams } from "../../components/query/params";
import { ResultPlot } from "../../components/query/ResultPlot";
import { ResultTable } from "../../components/query/ResultTable";
import { useSql } from "../../components/query/useSql";
import { useTall } from "../../components/useTall";
import { counted, exact, visible } from "../../lib/format";
import { unheeded } from "../../lib/sql";
import { BOARD, EXAMPLES } from "../../state/examples";
import { parseFile, queries, queriesFile, type SavedQuery, useQueries } from "../../state/queries";
import { useResource } from "../../state/resource";
import { client } from "../../state/server";
import { useSession } from "../../state/session";
import { store, useRestedPage } from "../../state/store";
import "../../components/query/style.css";
import "./style.css";

/** More rows than a panel can show say nothing more. */
const ROWS = 5000;

export default function Panels() {
	const saved = useQueries();
	const own = saved.filter((query) => query.panel);
	const files = useResource("/panels", (signal) => client.json<PanelFile[]>("/panels", signal)).data ?? [];
	const [said, setSaid] = useState("");
	const shown = own.length > 0 ? own : BOARD;
	/** A change of the default board makes it the reader's own. */
	const owned = (change: (id: string) => void) => (query: SavedQuery) => {
		if (own.length > 0) return change(query.id);
		if (!queries.adopt(BOARD)) return setSaid("This browser keeps nothing for this page: download the panels instead.");
		const mine = queries.get().find((q) => q.panel && q.name === query.name);
		if (mine) change(mine.id);
	};
	return (
		<div className="panels-view">
			<div className="panels-bar">
				<Add saved={saved} />
				<button
					type="button"
					className="button"
					title="Save all panels and queries as a JSON file, to keep with a project: fathom ui --panels DIR shows them"
					onClick={() =>
						saveText(queriesFile(own.length > 0 ? saved : BOARD), "fathom-panels.json", "application/json")
					}
				>
					Download
				</button>
				<Upload say={setSaid} />
				<span className="faint" role="status">
					{said || (own.length > 0 ? "" : "Default panels. Changing one makes the board your own.")}
				</span>
			</div>
			<div className="panels">
				{shown.map((query, i) => (
					<Own
						key={query.id}
						query={query}
						tools={{
							first: i === 0,
							last: i === shown.length - 1,
							up: owned((id) => queries.move(id, -1)),
							down: owned((id) => queries.move(id, 1)),
							wide: owned((id) => queries.change(id, { wide: !query.wide })),
							remove: owned((id) => queries.change(id, { panel: false })),
						}}
					/>
				))}
			</div>
			{files.map((file) => (
				<Team key={file.name} file={file} />
			))}
		</div>
	);
}

/** Another panel: an example, a saved query, or a new one. */
function Add({ saved }: { saved: readonly SavedQuery[] }) {
	const menu = useRef<HTMLDetailsElement>(null);
	const others = saved.filter((query) => !query.panel);
	const examples = EXAMPLES.filter((example) => !saved.some((query) => query.name === example.name && query.panel));
	const add = (query: Omit<SavedQuery, "id">) => {
		// What is added to the default board stays with it.
		if (!saved.some((q) => q.panel)) queries.adopt(BOARD);
		queries.save({ ...query, panel: true });
		if (menu.current) menu.current.open = false;
	};
	return (
		<details className="dropdown panels-add" ref={menu}>
			<summary className="button primary">Add panel</summary>
			<div className="dropdown-list">
				<Link className="button" to={{ view: "sql" }}>
					Write a query
				</Link>
				{others.length > 0 ? <h3>Saved queries</h3> : null}
				{others.map((query) => (
					<button type="button" key={query.id} className="button plain" onClick={() => add(query)}>
						{visible(query.name)}
					</button>
				))}
				{examples.length > 0 ? <h3>Examples</h3> : null}
				{examples.map(({ name, sql, plot }) => (
					<button
						type="button"
						key={name}
						className="button plain"
						title={sql}
						onClick={() => add({ name, sql, plot, panel: true, wide: false })}
					>
						{name}
					</button>
				))}
			</div>
		</details>
	);
}

/** Takes panels and queries from a file. */
function Upload({ say }: { say: (text: string) => void }) {
	const field = useRef<HTMLInputElement>(null);
	const read = async (file: File | undefined) => {
		if (!file) return;
		let found: SavedQuery[] | null = null;
		try {
			found = parseFile(JSON.parse(await file.text()));
		} catch {
			// Told below.
		}
		if (found === null) say(`${visible(file.name)} is not a file of panels: choose one that Download has made.`);
		else if (!queries.adopt(found)) say("This browser keeps nothing for this page.");
		else say(`${exact(found.length)} queries from ${visible(file.name)}; queries of the same name were replaced.`);
	};
	return (
		<>
			<button type="button" className="button" onClick={() => field.current?.click()}>
				Upload
			</button>
			<input
				ref={field}
				type="file"
				accept="application/json,.json"
				hidden
				onChange={(event) => {
					void read(event.target.files?.[0]);
					event.target.value = "";
				}}
			/>
		</>
	);
}

/** The panels of a file of the directory that `fathom ui --panels` was given. */
function Team({ file }: { file: PanelFile }) {
	const list = file.problem === null ? parseFile(file.content) : null;
	const problem = file.problem ?? (list === null ? "it is not a file of panels" : null);
	return (
		<section className="panels-team" aria-label={visible(file.name)}>
			<h2>
				{visible(file.name)}{" "}
				{problem ? (
					<span className="danger">cannot be used: {visible(problem)}</span>
				) : (
					<button type="button" className="button plain" onClick={() => list && queries.adopt(list)}>
						Copy to my panels
					</button>
				)}
			</h2>
			<div className="panels">
				{list
					?.filter((query) => query.panel)
					.map((query) => (
						<Own key={query.id} query={query} tools={null} />
					))}
			</div>
		</section>
	);
}

interface Tools {
	first: boolean;
	last: boolean;
	up: (query: SavedQuery) => void;
	down: (query: SavedQuery) => void;
	wide: (query: SavedQuery) => void;
	remove: (query: SavedQuery) => void;
}

function Own({ query, tools }: { query: SavedQuery; tools: Tools | null }) {
	const result = useSql(query.sql, ROWS);
	const page = useRestedPage();
	const { about } = useSession();
	const left = result.expanded ? unheeded(result.expanded, page.window.kind === "all", page.filter) : "";
	const height = useTall(240, 0.26);
	const name = visible(query.name);
	const tool = (label: string, sign: string, run: (query: SavedQuery) => void, off = false) => (
		<button
			type="button"
			className="button plain"
			title={label}
			aria-label={`${label}: ${name}`}
			disabled={off}
			onClick={() => run(query)}
		>
			{sign}
		</button>
	);
	return (
		<Panel
			title={name}
			className={query.wide ? "panel-wide" : ""}
			note={result.data ? [counted(result.data.rows, "row"), left].filter((part) => part !== "").join("; ") : ""}
			end={
				<>
					{tools ? tool("Move up", "↑", tools.up, tools.first) : null}
					{tools ? tool("Move down", "↓", tools.down, tools.last) : null}
					{tools ? tool(query.wide ? "Half as wide" : "As wide as the page", "↔", tools.wide) : null}
					<Link
						className="button plain"
						title="Change it in SQL"
						to={{ view: "sql", params: { sql: query.sql, name: query.name, ...choiceParams(query.plot) } }}
					>
						Edit
					</Link>
					{tools ? tool("Remove from the board (the query stays saved)", "×", tools.remove) : null}
				</>
			}
			{...(query.plot.form === "table" ? {} : { picture: query.name })}
		>
			<Shown of={result} height={height}>
				{(data) =>
					query.plot.form === "table" ? (
						<div className="panels-table" style={{ height }}>
							<ResultTable
								data={data}
								say={() => {}}
								since={about.started_at_ns}
								onOpen={(rid) => store.go({ view: "request", rid })}
							/>
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
