// The parts that a request is shown as: what it was, waits, requests to devices, neighbors.

import type { ReactNode } from "react";
import type { RequestAnswer, Row } from "../../api/types";
import { colorOf } from "../../lib/color";
import type { ListMember } from "../../lib/filters";
import { bytes, count, duration, exact, exactDuration, exactTime, visible } from "../../lib/format";
import { useFailures } from "../../state/failures";
import { toggleFilter } from "../../state/store";
import { useTheme } from "../../state/theme";
import { Link } from "../link";
import { Path, Swatch, Text } from "../text";
import { number, phasesOf, text } from "./rows";

/** Columns that stand elsewhere, or say nothing to a reader. */
const SHOWN_ELSEWHERE = new Set([
	"rid",
	"ts_ns",
	"dur_ns",
	"pid",
	"tid",
	"comm",
	"syscall",
	"errno",
	"path",
	"path2",
	"content",
	// What it did in the page cache.
	"cache_pages",
	"cache_misses",
	"readahead_pages",
	"added_pages",
	"dirtied",
	"journal_handles",
]);

const NAMES: Readonly<Record<string, string>> = {
	ret: "return value",
	fd: "file descriptor",
	cpu: "CPU",
	file_id: "file id",
	size: "bytes requested",
	bytes: "bytes transferred",
	file_offset: "offset in the file",
	path_arg: "path as passed",
	path_arg2: "second path as passed",
	args: "arguments",
	api: "interface",
	op_flags: "operation flags",
	content_bytes: "bytes hashed or kept",
	rid: "request id",
	user_call: "library call",
};

/** Numbers that identify something in the session's tables, for those who write SQL. */
const IDS: readonly string[] = ["rid", "file_id", "fd", "user_call"];

/** Name, result, who, when and how long, in a few lines. */
export function Head({ answer }: { answer: RequestAnswer }) {
	const theme = useTheme();
	const failed = useFailures();
	const { row } = answer;
	const name = text(row, "syscall") ?? (answer.table === "faults" ? "page fault" : "write-back");
	const errno = text(row, "errno");
	const dur = number(row, "dur_ns");
	const t = number(row, "ts_ns") ?? 0;
	return (
		<div className="request-head">
			<h2>
				<Swatch color={colorOf("syscall", name, theme)} /> {name}
				{errno ? <span className={failed(name, errno) ? "danger" : "quiet"}> {errno}</span> : null}
				<span className="request-took" title={dur === null ? "" : exactDuration(dur)}>
					{dur === null ? "duration not seen" : duration(dur)}
				</span>
			</h2>
			<div className="request-path mono">
				<Text of={text(row, "path") ?? text(row, "path_arg")} />
			</div>
			{text(row, "path2") ? (
				<div className="request-path mono">
					→ <Text of={text(row, "path2")} />
				</div>
			) : null}
			<div className="quiet">
				<Text of={text(row, "comm")} /> · process {text(row, "pid") ?? "?"}, thread {text(row, "tid")} · started at{" "}
				{exactTime(t)}
			</div>
			<Only row={row} />
		</div>
	);
}

/** Filters by what the call has. */
function Only({ row }: { row: Row }) {
	const choices: readonly (readonly [ListMember, string, string])[] = [
		["file", "file_id", "this file"],
		["tid", "tid", "this thread"],
		["pid", "pid", "this process"],
		["syscall", "syscall", "this syscall"],
	];
	return (
		<div className="request-only">
			<span className="faint">Filter by</span>
			{choices.map(([member, column, name]) => {
				const value = row[column];
				if (typeof value !== "number" && typeof value !== "string") return null;
				return (
					<button type="button" key={member} className="button plain" onClick={() => toggleFilter(member, value)}>
						{name}
					</button>
				);
			})}
		</div>
	);
}

/** All columns of its row that say something. */
export function Facts({ row }: { row: Row }) {
	const says = (name: string) => row[name] !== null && row[name] !== undefined && row[name] !== "";
	// A system call is the usual way: only io_uring, AIO and others are worth a line.
	const usual = (name: string) => name === "api" && row[name] === "syscall";
	const shown = Object.keys(row).filter(
		(name) => !SHOWN_ELSEWHERE.has(name) && !IDS.includes(name) && says(name) && !usual(name),
	);
	const list = (names: readonly string[]) => (
		<dl className="facts">
			{names.map((name) => (
				<Fact key={name} name={NAMES[name] ?? name.replaceAll("_", " ")} value={format(name, row[name] ?? null)} />
			))}
		</dl>
	);
	return (
		<>
			{list(shown)}
			<details className="request-ids">
				<summary className="faint">Ids for SQL</summary>
				{list(IDS.filter(says))}
			</details>
		</>
	);
}

function Fact({ name, value }: { name: string; value: string }) {
	return (
		<>
			<dt>{name}</dt>
			<dd className="mono">{visible(value)}</dd>
		</>
	);
}

function format(name: string, value: Row[string] | null): string {
	if (typeof value !== "number") return String(value);
	if (name === "bytes" || name === "size" || name === "around_bytes")
		return value < 1024 ? `${value}` : `${exact(value)} (${bytes(value)})`;
	if (name.endsWith("_ns")) return exactDuration(value);
	return name === "file_offset" || name === "ret" ? exact(value) : String(value);
}

export function Section({ title, note, children }: { title: string; note?: string; children: ReactNode }) {
	return (
		<section className="request-section">
			<h3>
				{title} {note ? <span className="faint">{note}</span> : null}
			</h3>
			{children}
		</section>
	);
}

const MOST = 60;

export function Waits({ rows, from }: { rows: readonly Row[]; from: number }) {
	return (
		<table className="figures fitted">
			<thead>
				<tr>
					<th className="number">Start</th>
					<th>Waited for</th>
					<th className="number">Waited</th>
					<th className="number">Waited for CPU</th>
					<th>Woken by</th>
				</tr>
			</thead>
			<tbody>
				{rows.slice(0, MOST).map((row, i) => (
					<tr key={i}>
						<td className="number quiet">{duration((number(row, "ts_ns") ?? 0) - from)}</td>
						<td>{text(row, "reason")?.replaceAll("_", " ")}</td>
						<td className="number" title={exactDuration(number(row, "dur_ns") ?? 0)}>
							{duration(number(row, "dur_ns") ?? 0)}
						</td>
						<td className="number">{duration(number(row, "run_queue_ns") ?? Number.NaN)}</td>
						<td>
							<Text of={text(row, "waker")} /> <span className="faint">{text(row, "waker_tid") ?? ""}</span>
						</td>
					</tr>
				))}
			</tbody>
		</table>
	);
}

export function Blocks({ blocks, from }: { blocks: RequestAnswer["block"]; from: number }) {
	const theme = useTheme();
	return (
		<table className="figures fitted">
			<thead>
				<tr>
					<th className="number">Start</th>
					<th>Request</th>
					<th className="number">Bytes</th>
					<th className="number">Waited</th>
					<th className="number">In device</th>
					<th className="number">Depth</th>
					<th>Ahead of it</th>
					<th>For</th>
				</tr>
			</thead>
			<tbody>
				{blocks.slice(0, MOST).map(({ row, bios, ahead }, i) => {
					const phases = phasesOf(row);
					const sum = (layer: string) => phases.filter((p) => p.layer === layer).reduce((a, p) => a + p.dur, 0);
					const device = phases.some((p) => p.layer === "device");
					const origins = [...new Set(bios.map((b) => text(b, "origin")).filter((o) => o !== null))].join(", ");
					return (
						<tr key={i} title={phases.map((p) => `${p.name}: ${exactDuration(p.dur)}`).join("\n")}>
							<td className="number quiet">{duration((number(row, "ts_ns") ?? 0) - from)}</td>
							<td>
								<Swatch color={colorOf("device", text(row, "device") ?? "", theme)} /> {text(row, "op")}{" "}
								{text(row, "device")} <span className="faint">{text(row, "flags") ?? ""}</span>
							</td>
							<td className="number">{bytes(number(row, "bytes") ?? 0)}</td>
							<td className="number">{duration(sum("block"))}</td>
							<td className="number">{device ? duration(sum("device")) : "–"}</td>
							<td className="number">{number(row, "queue_depth") ?? "–"}</td>
							<td title="Requests that had been queued for the device before this one and were not completed yet">
								{ahead === null ? (
									"–"
								) : ahead.requests === 0 ? (
									<span className="faint">nothing</span>
								) : (
									<>
										{count(ahead.requests)}, {bytes(ahead.bytes)}, <Text of={ahead.comm ?? "not known"} />
									</>
								)}
							</td>
							<td className="quiet" title={origins}>
								<Path of={text(row, "path")} />
							</td>
						</tr>
					);
				})}
			</tbody>
		</table>
	);
}

const COUNTERS: readonly (readonly [string, string])[] = [
	["task_clock_ns", "time on a processor"],
	["cycles", "cycles"],
	["instructions", "instructions"],
	["cache_references", "looks into the cache"],
	["cache_misses", "cache misses"],
	["branch_misses", "branches predicted wrong"],
	["page_faults", "page faults"],
	["context_switches", "times off the processor"],
	["cpu_migrations", "moves to another processor"],
];

/** What counters of perf say of a request. */
export function Counters({ row }: { row: Row }) {
	const [cycles, instructions] = [number(row, "cycles"), number(row, "instructions")];
	return (
		<dl className="facts">
			{COUNTERS.map(([column, name]) => {
				const value = number(row, column);
				if (value === null) return null;
				return <Fact key={column} name={name} value={column.endsWith("_ns") ? exactDuration(value) : exact(value)} />;
			})}
			{cycles !== null && instructions ? (
				<Fact name="cycles per instruction" value={(cycles / instructions).toFixed(2)} />
			) : null}
		</dl>
	);
}

/** Whether a call or fault did something in the page cache. */
export function usedCache(row: Row): boolean {
	return number(row, "added_pages") !== null;
}

export function PageCache({ row }: { row: Row }) {
	const of = (name: string) => number(row, name) ?? 0;
	const pages = number(row, "cache_pages");
	const parts = [
		pages !== null
			? `${count(pages - of("cache_misses"))} of ${count(pages)} pages were in memory, ${count(of("cache_misses"))} had to be read`
			: "",
		of("readahead_pages") > 0 ? `${count(of("readahead_pages"))} read ahead` : "",
		of("added_pages") > 0 ? `${count(of("added_pages"))} added` : "",
		of("dirtied") > 0 ? `${count(of("dirtied"))} ${of("dirtied") === 1 ? "folio" : "folios"} made dirty` : "",
		of("journal_handles") > 0 ? `${count(of("journal_handles"))} changes to metadata joined the journal` : "",
	].filter((part) => part !== "");
	return (
		<p className="quiet">{parts.length > 0 ? `${parts.join("; ")}.` : "Nothing of the page cache was touched."}</p>
	);
}

export function Neighbors({ answer }: { answer: RequestAnswer }) {
	const theme = useTheme();
	const failed = useFailures();
	const own = number(answer.row, "rid");
	const all = [...answer.neighbors.before, answer.row, ...answer.neighbors.after];
	const from = number(answer.row, "ts_ns") ?? 0;
	return (
		<table className="figures fitted neighbors">
			<thead>
				<tr>
					<th className="number">Start</th>
					<th>Call</th>
					<th className="number">Duration</th>
					<th className="number">Result</th>
					<th>Path or arguments</th>
				</tr>
			</thead>
			<tbody>
				{all.map((row) => {
					const rid = number(row, "rid");
					const name = text(row, "syscall") ?? "";
					return (
						<tr key={rid} aria-current={rid === own ? "true" : undefined}>
							<td className="number quiet">{signed((number(row, "ts_ns") ?? 0) - from)}</td>
							<td>
								<Swatch color={colorOf("syscall", name, theme)} />{" "}
								{rid === own ? <b>{name}</b> : <Link to={{ rid }}>{name}</Link>}
							</td>
							<td className="number">{duration(number(row, "dur_ns") ?? Number.NaN)}</td>
							<td className={failed(name, text(row, "errno")) ? "number danger" : "number"}>
								{text(row, "errno") ?? (number(row, "ret") === null ? "–" : exact(number(row, "ret") ?? 0))}
							</td>
							<td>
								<Path of={text(row, "path") ?? text(row, "path_arg") ?? text(row, "args")} />
							</td>
						</tr>
					);
				})}
			</tbody>
		</table>
	);
}

function signed(ns: number): string {
	return ns === 0 ? "0" : `${ns > 0 ? "+" : ""}${duration(ns)}`;
}
