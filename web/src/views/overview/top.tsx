import type { MouseEvent } from "react";
import type { TopBy } from "../../api/session";
import { Panel, Shown } from "../../components/panel";
import { Path, Text } from "../../components/text";
import { useThingMenu } from "../../components/useThingMenu";
import { colorOf } from "../../lib/color";
import { bytes, count, counted, duration, exact, exactDuration } from "../../lib/format";
import { isThing, nameOf, ranked, rowKey, type Sum, type Thing, thingOf } from "../../lib/sums";
import { useColumns, useSession } from "../../state/session";
import { useParam } from "../../state/store";
import { useTheme } from "../../state/theme";

export type TopKind = "path" | "syscall" | "thread";

const TITLES: Readonly<Record<TopKind, string>> = { path: "Files", syscall: "Syscalls", thread: "Threads" };
const MEMBERS = { path: "full_path", syscall: "syscall", thread: "tid" } as const;
const ROWS = 12;
/** Calls from which on the server may answer from sums over time. */
const MANY = 2e6;

const SORTS = ["time_ns", "calls", "bytes", "errors", "p99_ns"] as const;
type Sort = (typeof SORTS)[number];
const HEADS: Readonly<Record<Sort, string>> = {
	time_ns: "Time",
	calls: "Calls",
	bytes: "Bytes",
	errors: "Failed",
	p99_ns: "p99",
};
const WIDTHS: Readonly<Record<Sort, number>> = { time_ns: 98, calls: 70, bytes: 82, errors: 66, p99_ns: 92 };
const VALUES: Readonly<Record<Sort, (sum: Sum) => number>> = {
	time_ns: (s) => s.busy,
	calls: (s) => s.calls,
	bytes: (s) => s.bytes,
	errors: (s) => s.errors,
	p99_ns: (s) => s.p99 ?? 0,
};

/** The files, calls or threads with the most of something; a click filters by one. */
export function Top({ by }: { by: TopKind }) {
	const [param, setSort] = useParam(`sort_${by}`, "time_ns");
	const sort = SORTS.find((s) => s === param) ?? "time_ns";
	const { stored } = useSession();
	// The same question as that of the column of files above.
	const together = by === "path" ? { together: 1 } : {};
	const top = useColumns({
		path: "top",
		params: { by: by as TopBy, sort, limit: ROWS, faults: 1, ...together },
		turn: "lists",
	});
	const { open, menu } = useThingMenu();
	const inexact = stored > MANY && top.data?.metaFlag("exact") === false;
	return (
		<Panel title={TITLES[by]} note={inexact ? INEXACT[by] : ""}>
			<Shown of={top} height={(ROWS + 1) * 26} empty={(data) => data.rows === 0}>
				{(data) => <Table by={by} sums={ranked(data)} sort={sort} setSort={setSort} about={inexact} open={open} />}
			</Shown>
			{menu}
		</Panel>
	);
}

/** With millions of calls the sums over time answer, which keep only the keys with the most time in each bucket. */
const INEXACT: Readonly<Record<TopKind, string>> = {
	path: "millions of calls: files with little time may lack some of theirs",
	syscall: "",
	thread: "millions of calls: threads with little time may lack some of theirs",
};

interface TableProps {
	by: TopKind;
	sums: readonly Sum[];
	sort: Sort;
	setSort: (sort: string) => void;
	/** Percentiles are within a power of two. */
	about: boolean;
	open: (thing: Thing, event: MouseEvent) => void;
}

function Table({ by, sums, sort, setSort, about, open }: TableProps) {
	const theme = useTheme();
	const most = sums.reduce((a, s) => Math.max(a, VALUES[sort](s)), 0);
	return (
		<table className={`figures top-${by}`}>
			<thead>
				<tr>
					<th>{by === "path" ? "Path" : "Name"}</th>
					{SORTS.map((id) => (
						<th
							key={id}
							className="number"
							style={{ width: WIDTHS[id] }}
							aria-sort={sort === id ? "descending" : undefined}
						>
							<button type="button" onClick={() => setSort(id)}>
								{HEADS[id]}
							</button>
						</th>
					))}
				</tr>
			</thead>
			<tbody>
				{sums.map((sum) => (
					<tr
						key={rowKey(sum)}
						className={isThing(sum) ? "link" : undefined}
						title={titleOf(sum)}
						onClick={(event) => isThing(sum) && open(thingOf(sum, MEMBERS[by]), event)}
					>
						<td>
							<span
								className="bar"
								style={{
									width: `calc(${most > 0 ? (VALUES[sort](sum) / most) * 100 : 0}% - 10px)`,
									background: by === "syscall" ? colorOf("syscall", sum.key, theme) : colorOf("series", "time", theme),
								}}
							/>
							{/* Pressing it is a click on its row. */}
							{isThing(sum) ? (
								<button type="button" className="plain-name">
									<Name by={by} sum={sum} />
								</button>
							) : (
								<Name by={by} sum={sum} />
							)}
						</td>
						<td className="number" title={timeTitle(sum)}>
							{sum.atLeast && !sum.slight ? "≥ " : ""}
							{duration(sum.busy)}
						</td>
						<td className="number" title={[counted(sum.calls, "call"), ...faultsOf(sum)].join(", ")}>
							{count(sum.calls === 0 ? sum.faults : sum.calls)}
						</td>
						<td className="number" title={counted(sum.bytes, "byte")}>
							{bytes(sum.bytes)}
						</td>
						<td
							className={(sum.failures ?? 0) > 0 ? "number danger" : "number faint"}
							title={
								sum.failures === null
									? counted(sum.errors, "error")
									: `${exact(sum.failures)} failed; ${exact(sum.errors - sum.failures)} returned an error that is an answer`
							}
						>
							{count(sum.failures ?? sum.errors)}
						</td>
						<td className="number" title={about ? "p99 to within a factor of 2" : exactDuration(sum.p99 ?? 0)}>
							{sum.p99 === null ? "–" : `${about ? "≈ " : ""}${duration(sum.p99)}`}
						</td>
					</tr>
				))}
			</tbody>
		</table>
	);
}

function faultsOf({ faults }: Sum): string[] {
	return faults > 0 ? [counted(faults, "page fault")] : [];
}

function timeTitle({ atLeast, busy, inFaults }: Sum): string {
	const of = inFaults > 0 ? `, of it ${exactDuration(inFaults)} in page faults` : "";
	return `${atLeast ? "at least " : ""}${exactDuration(busy)}${of}`;
}

function titleOf(sum: Sum): string | undefined {
	if (!isThing(sum)) return undefined;
	if (sum.directory !== undefined) return "Click: what can be done with them.";
	return "Click: what can be done with it. Alt+click: all but it.";
}

function Name({ by, sum }: { by: TopKind; sum: Sum }) {
	if (sum.directory !== undefined) return <Text of={sum.label} />;
	if (sum.key === null) return <span className="faint">{by === "path" ? "calls without a path" : "none"}</span>;
	if (by === "path") return <Path of={nameOf(sum)} />;
	return (
		<span>
			<Text of={sum.label} />
			{by === "thread" ? <span className="faint"> {sum.key}</span> : null}
		</span>
	);
}
