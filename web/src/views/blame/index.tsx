// Who held whom up: on devices, on CPUs, and by waking late.

import { useMemo } from "react";
import type { Columns } from "../../api/arrow";
import { ApiError } from "../../api/client";
import { Link } from "../../components/link";
import { Panel, Shown } from "../../components/panel";
import { Segmented } from "../../components/segmented";
import { targetOf } from "../../components/story";
import { Swatch } from "../../components/text";
import { colorOf } from "../../lib/color";
import { count, counted, duration, exactDuration, percent, visible } from "../../lib/format";
import type { Resource } from "../../state/resource";
import { useColumns } from "../../state/session";
import { usePage, useParam, useRestedPage } from "../../state/store";
import { useTheme } from "../../state/theme";
import {
	type By,
	culpritName,
	filtered,
	type Held,
	heldOf,
	isIdle,
	isItself,
	matrixOf,
	type Party,
	partyName,
	resourcesOf,
	type Sort,
	sorted,
} from "./held";
import "./style.css";

/** Rows that are shown. */
const SHOWN = 200;
const MATRIX = 10;
/** The status of a statement that needs more memory than it may have. */
const TOO_MUCH = 422;

const WAYS: readonly (readonly [By, string])[] = [
	["process", "by process"],
	["thread", "by thread"],
];

const HEADS: readonly (readonly [Sort, string])[] = [
	["victim", "Waited"],
	["resource", "For"],
	["culprit", "Because of"],
	["time", "Time"],
	["share", "Share"],
];

export default function Blame() {
	const [byParam, setBy] = useParam("by", "process");
	const by: By = byParam === "thread" ? "thread" : "process";
	const [resource, setResource] = useParam("resource", "");
	const [own, setOwn] = useParam("own", "");
	const [idle, setIdle] = useParam("idle", "");
	const [sortParam, setSort] = useParam("sort", "time");
	const sort = HEADS.find(([id]) => id === sortParam)?.[0] ?? "time";
	const answer = advised(
		useColumns({ path: by === "thread" ? "questions/blame-threads" : "questions/blame-processes", filtered: false }),
	);
	const { filter, window } = useRestedPage();
	const rows = useMemo(() => (answer.data ? filtered(heldOf(answer.data), by, filter) : []), [answer.data, by, filter]);
	const resources = useMemo(() => resourcesOf(rows), [rows]);
	const chosen = useMemo(() => {
		const all = rows.filter((row) => resource === "" || row.resource === resource);
		const others = own === "" ? all : all.filter((row) => !isItself(row));
		// A resource that was chosen is shown.
		return idle === "" && resource === "" ? others.filter((row) => !isIdle(row)) : others;
	}, [rows, resource, own, idle]);
	const hidden = idle === "" && resource === "" ? rows.filter(isIdle).reduce((sum, row) => sum + row.time, 0) : 0;
	const known = answer.data?.metaFlag("cut") ? answer.data.rows : null;
	return (
		<div className="blame">
			<Panel
				title="Who held whom up"
				note={`waiting in this window; of the filter, ${by === "thread" ? "threads" : "processes"} and names count`}
				end={
					<>
						<label className="blame-choice">
							<span className="faint">Resource</span>
							<select className="field" value={resource} onChange={(event) => setResource(event.target.value)}>
								<option value="">all</option>
								{resource !== "" && !resources.some((r) => r.resource === resource) ? (
									<option value={resource}>{visible(resource)}</option>
								) : null}
								{resources.map((r) => (
									<option key={r.resource} value={r.resource}>
										{visible(r.resource)}: {duration(r.time)}
									</option>
								))}
							</select>
						</label>
						<label className="blame-choice">
							<input
								type="checkbox"
								checked={own !== ""}
								onChange={(event) => setOwn(event.target.checked ? "hidden" : "")}
							/>
							<span>only others</span>
						</label>
						<label
							className="blame-choice"
							title={`Waits in poll and for the thread's own timers: it waits for work, nothing holds it up${hidden > 0 ? `. ${duration(hidden)} are hidden` : ""}`}
						>
							<input
								type="checkbox"
								checked={idle !== ""}
								onChange={(event) => setIdle(event.target.checked ? "shown" : "")}
							/>
							<span>idle waits</span>
						</label>
						<Segmented label="Rows" value={by} options={WAYS} onChange={setBy} />
					</>
				}
			>
				<Shown
					of={answer}
					height={160}
					empty={(data) => data.rows === 0}
					emptyTitle={window.kind === "all" ? "No waits are known" : "No waits are known in this window"}
					emptyText="Record with --layers sched,block: waits, and requests to devices."
				>
					{() => (
						<Rows rows={sorted(chosen, sort)} by={by} sort={sort} setSort={setSort} known={known} hidden={hidden} />
					)}
				</Shown>
			</Panel>
			{chosen.length > 0 && !answer.stale ? (
				<Panel title="Who waited for whom" note="row waited for column; the more time, the stronger the color">
					<Cells rows={chosen} />
				</Panel>
			) : null}
		</div>
	);
}

/** The reader has written no statement that could be narrowed down. */
function advised(answer: Resource<Columns>): Resource<Columns> {
	const { error } = answer;
	if (error?.status !== TOO_MUCH) return answer;
	const next =
		"times for a CPU take about 100 bytes of memory per wait: give the server more (fathom ui --memory), or query part of the waits in the SQL tab";
	return { ...answer, error: new ApiError(error.status, error.what, error.subject, next) };
}

interface RowsProps {
	rows: readonly Held[];
	by: By;
	sort: Sort;
	setSort: (sort: string) => void;
	/** Rows of the answer, if there are more. */
	known: number | null;
	/** Time of idle waits that have no rows here. */
	hidden: number;
}

function Rows({ rows, by, sort, setSort, known, hidden }: RowsProps) {
	const theme = useTheme();
	const most = rows.reduce((a, row) => Math.max(a, row.time), 1);
	const color = (row: Held) =>
		row.kind === "device" ? colorOf("device", row.resource, theme) : colorOf("reason", row.resource, theme);
	return (
		<>
			<div className="blame-rows">
				<table className="figures">
					<thead>
						<tr>
							{HEADS.map(([id, title]) => (
								<th
									key={id}
									className={id === "time" || id === "share" ? "number" : undefined}
									aria-sort={sort === id ? (id === "time" || id === "share" ? "descending" : "ascending") : undefined}
								>
									<button type="button" onClick={() => setSort(id)}>
										{title}
									</button>
								</th>
							))}
						</tr>
					</thead>
					<tbody>
						{rows.slice(0, SHOWN).map((row) => (
							<tr key={`${row.resource}\0${row.kind}\0${partyName(row.victim)}\0${culpritName(row)}`}>
								<td>
									<Who party={row.victim} by={by} />
								</td>
								<td>
									<Swatch color={color(row)} />{" "}
									{row.kind === "device" ? (
										<Link to={{ view: "devices", params: { device: row.resource } }} title="The queue of this device">
											queue of {visible(row.resource)}
										</Link>
									) : (
										visible(row.resource.replaceAll("_", " "))
									)}
								</td>
								<td>
									{row.culprit === null || (row.culprit.id === null && row.culprit.name === null) ? (
										<span className="faint">{culpritName(row)}</span>
									) : isItself(row) ? (
										<span className="faint">itself</span>
									) : (
										<Who party={row.culprit} by={by} />
									)}
								</td>
								<td className="number" title={exactDuration(row.time)}>
									<span
										className="bar"
										style={{ width: `calc(${(row.time / most) * 100}% - 12px)`, background: color(row) }}
									/>
									<span>{duration(row.time)}</span>
								</td>
								<td className="number quiet">{percent(row.share)}</td>
							</tr>
						))}
					</tbody>
				</table>
			</div>
			{rows.length === 0 ? <p className="blame-said">No row is left by these choices.</p> : null}
			{hidden > 0 ? (
				<p className="blame-said faint">
					{duration(hidden)} of idle waits, in poll and for a thread's own timers, are not shown: check "idle waits".
				</p>
			) : null}
			{rows.length > SHOWN || known !== null ? (
				<p className="blame-said faint">
					{rows.length > SHOWN ? `${SHOWN} of ${counted(rows.length, "row", "rows", count)} are shown. ` : ""}
					{known !== null ? `Only the ${counted(known, "row", "rows", count)} with the most time were asked for. ` : ""}
					The view blame of the SQL tab has all, of the whole recording.
				</p>
			) : null}
		</>
	);
}

function Who({ party, by }: { party: Party; by: By }) {
	const { filter } = usePage();
	const name = <bdi>{partyName(party)}</bdi>;
	if (party.id === null || !party.known) return name;
	const { to, title } = targetOf(
		by === "thread" ? { to: "thread", tid: party.id } : { to: "process", pid: party.id },
		filter,
	);
	return (
		<Link to={to} title={title}>
			{name}
		</Link>
	);
}

function Cells({ rows }: { rows: readonly Held[] }) {
	const matrix = useMemo(() => matrixOf(rows, MATRIX), [rows]);
	return (
		<>
			<div className="blame-matrix">
				<table className="figures">
					<thead>
						<tr>
							<th>Waited</th>
							{matrix.culprits.map((name) => (
								<th key={name} className="number cut" scope="col" title={name}>
									<bdi>{name}</bdi>
								</th>
							))}
						</tr>
					</thead>
					<tbody>
						{matrix.victims.map((name, i) => (
							<tr key={name}>
								<th scope="row" className="cut" title={name}>
									<bdi>{name}</bdi>
								</th>
								{matrix.culprits.map((culprit, at) => {
									const time = matrix.cells[i]?.[at] ?? 0;
									const strength = matrix.most > 0 ? Math.round(40 * Math.sqrt(time / matrix.most)) : 0;
									return (
										<td
											key={culprit}
											className="number"
											style={{ background: `color-mix(in srgb, var(--accent) ${strength}%, transparent)` }}
											title={`${name} waited ${exactDuration(time)} because of ${culprit}`}
										>
											{time > 0 ? duration(time) : ""}
										</td>
									);
								})}
							</tr>
						))}
					</tbody>
				</table>
			</div>
			{matrix.rest > 0 ? <p className="blame-said faint">{duration(matrix.rest)} are of others.</p> : null}
		</>
	);
}
