// Any question to the session: SQL, its result as a table or a plot, and what is worth keeping.

import { useRef, useState } from "react";
import type { Relation } from "../../api/types";
import { Link } from "../../components/link";
import { savePng } from "../../components/png";
import { Choice } from "../../components/query/Choice";
import { csv, saveText } from "../../components/query/cells";
import { choiceOf, choiceParams } from "../../components/query/params";
import { ResultPlot } from "../../components/query/ResultPlot";
import { ResultTable } from "../../components/query/ResultTable";
import { useSql } from "../../components/query/useSql";
import { savedName } from "../../components/save";
import { Empty, Progress, sentence } from "../../components/states";
import { useSize } from "../../components/useSize";
import { counted, visible } from "../../lib/format";
import { errorIn, type SqlError, unheeded } from "../../lib/sql";
import { EXAMPLES } from "../../state/examples";
import { useShortcut } from "../../state/keys";
import { type PlotChoice, queries } from "../../state/queries";
import { useJson, useSession } from "../../state/session";
import { store, usePage, useParam } from "../../state/store";
import { Editor } from "./Editor";
import { Side } from "./Side";
import "../../components/query/style.css";
import "./style.css";

const MOST_ROWS = 10_000;

export default function Sql() {
	const shown = usePage();
	const { params } = shown;
	const asked = params["sql"] ?? null;
	const choice = choiceOf(params);
	const session = useSession();
	const [units, setUnits] = useParam("units", "readable");
	const times = units !== "exact";
	const [text, setText] = useState(asked ?? EXAMPLES.find((example) => example.first)?.sql ?? "");
	const [name, setName] = useState(params["name"] ?? "");
	const [cancelled, setCancelled] = useState(false);
	const [turn, setTurn] = useState(0);
	const [said, setSaid] = useState("");
	const field = useRef<HTMLTextAreaElement>(null);
	const output = useRef<HTMLDivElement>(null);
	const { height } = useSize(output);
	const schema = useJson<Relation[]>({ path: "schema", windowed: false, filtered: false });
	const result = useSql(cancelled ? null : asked, MOST_ROWS, turn);

	// "Back" leads to the statement before.
	const [shownFor, setShownFor] = useState(asked);
	if (shownFor !== asked) {
		setShownFor(asked);
		if (asked !== null) setText(asked);
	}

	const run = (sql = text, plot: PlotChoice = choice, called = name) => {
		setCancelled(false);
		setSaid("");
		if (sql.trim() === "") return;
		if (sql === asked) setTurn((n) => n + 1);
		store.go({ params: { sql, ...choiceParams(plot), name: called || null } });
	};
	const choose = (plot: PlotChoice) => store.go({ params: choiceParams(plot) }, "replace");
	const load = (called: string, sql: string, plot: PlotChoice) => {
		setText(sql);
		setName(called);
		run(sql, plot, called);
	};
	const insert = (word: string) => {
		const target = field.current;
		const at = target?.selectionStart ?? text.length;
		const end = target?.selectionEnd ?? at;
		const gap = at > 0 && !/[\s(,.]/.test(text[at - 1] ?? " ") ? " " : "";
		setText(text.slice(0, at) + gap + word + text.slice(end));
		target?.focus();
	};
	const save = (panel: boolean) => {
		const title = name.trim() || "Query";
		const kept = queries.save({ name: title, sql: text, plot: choice, panel, wide: false });
		setName(title);
		setSaid(
			kept === null
				? "the browser keeps nothing for this page: copy the address instead, it holds the statement"
				: panel
					? `“${title}” is on the page of panels`
					: `saved as “${title}”`,
		);
	};
	useShortcut(["e"], "Write SQL", "SQL", () => field.current?.focus());

	const failed = result.error && !cancelled ? result.error : null;
	const error = failed && result.expanded && text === asked ? errorOf(failed.what, result.expanded) : null;
	const data = cancelled ? undefined : result.data;
	const running = !cancelled && result.loading;
	const left = data && result.expanded ? unheeded(result.expanded, shown.window.kind === "all", shown.filter) : "";
	return (
		<div className="sql-view">
			<Side schema={schema} insert={insert} load={load} />
			<div className="sql-main">
				<Editor
					value={text}
					onChange={setText}
					onRun={() => run()}
					names={schema.data ?? []}
					error={error}
					field={field}
				/>
				<div className="sql-bar">
					{running && data === undefined ? (
						<button type="button" className="button" onClick={() => setCancelled(true)}>
							Cancel
						</button>
					) : (
						<button type="button" className="button primary" title="Ctrl+Enter" onClick={() => run()}>
							Run
						</button>
					)}
					<input
						className="field"
						aria-label="Name of the query"
						placeholder="Name"
						value={name}
						onChange={(event) => setName(event.target.value)}
					/>
					<button type="button" className="button" onClick={() => save(false)}>
						Save
					</button>
					<button type="button" className="button" onClick={() => save(true)}>
						Add as panel
					</button>
					<Link className="button plain" to={{ view: "panels" }}>
						Open panels
					</Link>
					<span className="sql-said cut" id="sql-said" role="status">
						{said}
					</span>
				</div>
				{failed ? (
					<div className="sql-error" role="alert">
						{sentence(error?.message ?? failed.what)}
						{failed.next && failed.status !== 422 ? <span className="quiet"> {sentence(failed.next)}.</span> : null}
						{text === asked ? null : <span className="quiet"> The statement was changed since.</span>}
					</div>
				) : null}
				<div className="sql-result-bar">
					<Choice data={data} choice={choice} onChange={choose} />
					<span className="faint sql-facts">
						{data ? factsOf(data.rows, data.meta) : ""}
						{result.expanded?.follows ? " · uses the current window and filter" : ""}
						{left ? <b> · {left}</b> : null}
					</span>
					{data && choice.form === "table" ? (
						<label
							className="choice"
							title="Durations and bytes in the unit that fits, points in time since the start of the session. Exact values stand in tooltips, copies, and CSV"
						>
							<input
								type="checkbox"
								checked={times}
								onChange={(event) => setUnits(event.target.checked ? "readable" : "exact")}
							/>
							readable units
						</label>
					) : null}
					{data && choice.form === "table" ? (
						<button
							type="button"
							className="button plain"
							title="All rows of the result as a CSV file"
							onClick={() => saveText(csv(data), `${savedName(session.id, visible(name) || "query")}.csv`, "text/csv")}
						>
							CSV
						</button>
					) : null}
					{data && choice.form !== "table" ? (
						<button
							type="button"
							className="button plain"
							title="Save this plot as a PNG picture"
							onClick={() =>
								output.current && savePng(output.current, visible(name) || "Query", visible(name) || "query")
							}
						>
							PNG
						</button>
					) : null}
				</div>
				<div className="sql-output" ref={output} aria-busy={running && data === undefined}>
					<Progress on={running} />
					{data ? (
						choice.form === "table" ? (
							<ResultTable
								data={data}
								say={setSaid}
								since={times ? session.about.started_at_ns : undefined}
								onOpen={(rid) => store.go({ view: "request", rid })}
							/>
						) : (
							<ResultPlot
								data={data}
								choice={choice}
								title={name || "Query"}
								height={Math.max(160, height - 40)}
								follows={result.expanded?.follows === true}
							/>
						)
					) : cancelled ? (
						<Empty title="Cancelled">The statement was stopped. Run it again, or narrow it with $from and $to.</Empty>
					) : asked === null ? (
						<Empty title="Query this session">
							Write a SELECT above and run it with Ctrl+Enter, or choose one under Queries. Clicks on tables and columns
							put their names in.
						</Empty>
					) : null}
				</div>
			</div>
		</div>
	);
}

function errorOf(what: string, expanded: { text: string; back: (place: number) => number }): SqlError {
	const found = errorIn(what, expanded.text);
	return found.at < 0 ? found : { ...found, at: expanded.back(found.at) };
}

function factsOf(rows: number, meta: Readonly<Record<string, unknown>>): string {
	const elapsed = typeof meta["elapsed_ms"] === "number" ? ` in ${Math.round(meta["elapsed_ms"])} ms` : "";
	const cut = meta["cut"] === true ? ", there are more: add a LIMIT, or group" : "";
	return `${counted(rows, "row")}${cut}${elapsed}`;
}
