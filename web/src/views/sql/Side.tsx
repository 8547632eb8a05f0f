// Beside the editor: tables and columns with their meanings, and statements that were saved.

import { useState } from "react";
import type { Relation } from "../../api/types";
import { Shown } from "../../components/panel";
import { Segmented } from "../../components/segmented";
import { count, counted, visible } from "../../lib/format";
import { identifier, PLACEHOLDERS } from "../../lib/sql";
import { EXAMPLES } from "../../state/examples";
import { type PlotChoice, queries, useQueries } from "../../state/queries";
import type { Resource } from "../../state/resource";

interface Props {
	schema: Resource<Relation[]>;
	insert: (text: string) => void;
	load: (name: string, sql: string, plot: PlotChoice) => void;
}

export function Side({ schema, insert, load }: Props) {
	const [tab, setTab] = useState<"tables" | "queries">("tables");
	return (
		<aside className="sql-side" aria-label="Tables and saved queries">
			<div className="sql-side-head">
				<Segmented
					label="Tables or queries"
					value={tab}
					options={[
						["tables", "Tables"],
						["queries", "Queries"],
					]}
					onChange={setTab}
				/>
			</div>
			{tab === "tables" ? <Tables schema={schema} insert={insert} /> : <Saved load={load} />}
		</aside>
	);
}

function Tables({ schema, insert }: Pick<Props, "schema" | "insert">) {
	const [typed, setTyped] = useState("");
	const wanted = typed.trim().toLowerCase();
	return (
		<>
			<div className="sql-side-head">
				<input
					className="field"
					type="search"
					placeholder="Find a table, a column, a meaning"
					aria-label="Find a table, a column or a meaning"
					spellCheck={false}
					value={typed}
					onChange={(event) => setTyped(event.target.value)}
				/>
			</div>
			<div className="sql-side-list">
				<Shown of={schema} height={200} empty={(list) => list.length === 0} emptyTitle="No tables">
					{(list) => (
						<div>
							{list.map((relation) => (
								<Table key={relation.name} relation={relation} wanted={wanted} insert={insert} />
							))}
							{wanted === "" ? <Placeholders insert={insert} /> : null}
						</div>
					)}
				</Shown>
			</div>
		</>
	);
}

function Table({ relation, wanted, insert }: { relation: Relation; wanted: string; insert: (text: string) => void }) {
	const [open, setOpen] = useState(false);
	const has = (text: string) => text.toLowerCase().includes(wanted);
	const own = wanted === "" || has(relation.name) || has(relation.doc);
	const columns = own ? relation.columns : relation.columns.filter((c) => has(c.name) || has(c.doc));
	if (!own && columns.length === 0) return null;
	const shown = open || (wanted !== "" && !has(relation.name));
	return (
		<section className="sql-table">
			<div className="sql-table-head">
				<button type="button" className="sql-fold" aria-expanded={shown} onClick={() => setOpen(!open)}>
					<span aria-hidden="true">{shown ? "▾" : "▸"}</span>
					<b className="mono">{relation.name}</b>
					<span className="faint">{relation.view ? "view" : relation.rows === null ? "" : count(relation.rows)}</span>
				</button>
				<button
					type="button"
					className="sql-insert"
					title={`Put ${relation.name} into the statement`}
					aria-label={`Put ${relation.name} into the statement`}
					onClick={() => insert(relation.name)}
				>
					+
				</button>
			</div>
			{shown ? (
				<>
					<p className="sql-doc" title={relation.rows === null ? undefined : counted(relation.rows, "row")}>
						{relation.doc}
					</p>
					<ul>
						{columns.map((column) => (
							<li key={column.name}>
								<button
									type="button"
									title={`${column.name}, ${column.sql_type}${column.nullable ? ", may be null" : ""}: ${column.doc}`}
									onClick={() => insert(identifier(column.name))}
								>
									<span className="mono">{column.name}</span>
									<span className="faint sql-type">{column.sql_type.toLowerCase()}</span>
									<span className="sql-doc">{column.doc}</span>
								</button>
							</li>
						))}
					</ul>
				</>
			) : null}
		</section>
	);
}

function Placeholders({ insert }: { insert: (text: string) => void }) {
	return (
		<section className="sql-table">
			<h2>Filled in by the page</h2>
			<ul>
				{PLACEHOLDERS.map(([name, meaning]) => (
					<li key={name}>
						<button type="button" onClick={() => insert(name)}>
							<span className="mono">{name}</span>
							<span />
							<span className="sql-doc">{meaning}</span>
						</button>
					</li>
				))}
			</ul>
			<p className="sql-doc">A statement with them is asked again when window, filter or recording move on.</p>
		</section>
	);
}

function Saved({ load }: Pick<Props, "load">) {
	const saved = useQueries();
	return (
		<div className="sql-side-list">
			<section className="sql-table">
				<h2>Saved in this browser</h2>
				{saved.length === 0 ? <p className="sql-doc">None yet: “Save” keeps a statement with its plot.</p> : null}
				<ul>
					{saved.map((query) => (
						<li key={query.id} className="sql-saved">
							<button type="button" title={visible(query.sql)} onClick={() => load(query.name, query.sql, query.plot)}>
								{visible(query.name)} {query.panel ? <span className="badge">panel</span> : null}
							</button>
							<button
								type="button"
								className="sql-insert"
								title="Forget it"
								aria-label={`Forget ${visible(query.name)}`}
								onClick={() => queries.remove(query.id)}
							>
								×
							</button>
						</li>
					))}
				</ul>
			</section>
			<section className="sql-table">
				<h2>Examples</h2>
				<ul>
					{EXAMPLES.map((example) => (
						<li key={example.name}>
							<button type="button" title={example.sql} onClick={() => load(example.name, example.sql, example.plot)}>
								{example.name}
							</button>
						</li>
					))}
				</ul>
			</section>
		</div>
	);
}
