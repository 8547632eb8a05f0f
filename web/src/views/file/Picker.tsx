// The files of the session: searched by a part of their path, the one with the most of something first.

import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import type { Columns } from "../../api/arrow";
import { Shown } from "../../components/panel";
import { Segmented } from "../../components/segmented";
import { colorOf } from "../../lib/color";
import { bytes, count, counted, duration, exact, visible } from "../../lib/format";
import { useShortcut } from "../../state/keys";
import { savedFiles } from "../../state/server";
import { useColumns } from "../../state/session";
import { useParam } from "../../state/store";
import { useTheme } from "../../state/theme";
import {
	amountOf,
	distinctNames,
	type Entry,
	type FileRow,
	firstOf,
	grouped,
	isFolder,
	parseFiles,
	type Sort,
	sumOf,
} from "./groups";

const MOST = 300;
/** Typing rests this long before the server is asked. */
const REST_MS = 200;

const SORTS = [
	["time_ns", "time"],
	["calls", "calls"],
	["bytes", "bytes"],
] as const;

interface Props {
	chosen: readonly number[];
	choose: (files: readonly number[]) => void;
	/** The files are known: the first is what is shown while none is chosen. */
	found: (first: readonly number[] | null) => void;
}

export function Picker({ chosen, choose, found }: Props) {
	const [sort, setSort] = useParam("order", "time_ns");
	const [typed, setTyped] = useState("");
	const [wanted, setWanted] = useState("");
	const field = useRef<HTMLInputElement>(null);
	const list = useRef<HTMLUListElement>(null);
	useEffect(() => {
		const timer = setTimeout(() => setWanted(typed.trim()), REST_MS);
		return () => clearTimeout(timer);
	}, [typed]);
	useShortcut(["o"], "Find a file", "File", () => field.current?.focus());
	const by = SORTS.find(([id]) => id === sort)?.[0] ?? "time_ns";
	const top = useColumns({
		path: "top",
		params: { by: "file", sort: by, limit: MOST, named: 1 },
		...(wanted ? { filter: { path: wanted } } : {}),
	});

	const data = top.stale && wanted === "" ? undefined : top.data;
	const items = useMemo(() => (data ? grouped(rowsOf(data), by, wanted !== "") : []), [data, by, wanted]);
	// What the system's files have is seldom what the reader looks for.
	const firstFiles = firstOf(items, by, savedFiles)?.files.join(",");
	const told = useRef(found);
	told.current = found;
	useEffect(() => {
		if (data && wanted === "") told.current(firstFiles === undefined ? null : parseFiles(firstFiles));
	}, [data, wanted, firstFiles]);
	const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
	const toggle = (folder: string) =>
		setOpen((before) => {
			const next = new Set(before);
			if (!next.delete(folder)) next.add(folder);
			return next;
		});

	const onKey = (event: KeyboardEvent) => {
		const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
		if (step !== 0) {
			const buttons = [...(list.current?.querySelectorAll("button") ?? [])];
			const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
			const next = buttons[Math.max(0, Math.min(buttons.length - 1, at + step))];
			next?.focus();
		} else if (event.key === "Enter" && event.target === field.current && firstFiles !== undefined) {
			choose(parseFiles(firstFiles));
		} else if (event.key === "Escape" && event.target === field.current) {
			setTyped("");
			field.current?.blur();
		} else return;
		event.preventDefault();
		event.stopPropagation();
	};
	const total = data?.metaNumber("total") ?? 0;
	const cut = data !== undefined && total > data.rows;
	const most = items.reduce((a, item) => Math.max(a, isFolder(item) && item.path === "" ? 0 : sumOf(item, by)), 0);
	// Opening the folder of the first only once the view has chosen it would move the rows below.
	const key = chosen.length > 0 ? chosen.join(",") : (firstFiles ?? "");
	const line = (entry: Entry, name: string | null) => (
		<Line
			key={entry.files.join(",")}
			entry={entry}
			sort={by}
			share={most > 0 ? Math.min(1, amountOf(entry, by) / most) : 0}
			name={name}
			current={entry.files.join(",") === key}
			choose={choose}
		/>
	);

	return (
		<section className="picker" aria-label="Files" onKeyDown={onKey}>
			<div className="picker-head">
				<input
					ref={field}
					className="field"
					type="search"
					placeholder="Find a file by its path (o)"
					aria-label="Find a file by a part of its path"
					spellCheck={false}
					value={typed}
					onChange={(event) => setTyped(event.target.value)}
				/>
				<Segmented label="Most" value={by} options={SORTS} onChange={setSort} />
			</div>
			<Shown
				of={top}
				empty={() => items.length === 0}
				emptyTitle={wanted ? "No path contains this" : "No files here"}
				emptyText={wanted ? "Part of the path is enough; upper and lower case differ." : undefined}
			>
				{() => (
					<ul className="picker-list" ref={list}>
						{items.map((item) => {
							if (!isFolder(item)) return line(item, item.path);
							const all = item.entries.flatMap((entry) => entry.files);
							const shown = open.has(item.path) || item.entries.some((entry) => entry.files.join(",") === key);
							const names = shown ? distinctNames(item.entries.flatMap(({ path }) => path ?? [])) : null;
							return (
								<li key={`folder ${item.path}`}>
									<div className="picker-folder">
										<button type="button" aria-expanded={shown} onClick={() => toggle(item.path)}>
											<span aria-hidden="true">{shown ? "▾" : "▸"}</span>
											<span className="path cut-start">
												{item.path === "" ? (
													"system files"
												) : (
													<bdi dir="ltr" className="mono" title={visible(item.path)}>
														{visible(item.path === "/" ? "" : item.path)}/
													</bdi>
												)}
											</span>
											<span className="faint">
												{cut ? `${exact(item.entries.length)} listed files` : counted(item.entries.length, "file")},{" "}
												{show(by)(sumOf(item, by))}
											</span>
										</button>
										{item.path === "" ? null : (
											<button
												type="button"
												className="picker-all"
												title="Show all files of the directory in one picture"
												aria-label={`Show all files of ${visible(item.path)} in one picture`}
												aria-current={all.join(",") === key}
												onClick={() => choose(all)}
											>
												all
											</button>
										)}
									</div>
									{names ? (
										<ul className="picker-inside">
											{item.entries.map((entry) => line(entry, names.get(entry.path ?? "") ?? entry.path))}
										</ul>
									) : null}
								</li>
							);
						})}
					</ul>
				)}
			</Shown>
			{cut ? (
				<p className="faint picker-more">
					{exact(data.rows)} of {exact(total)} files are listed; sums of directories are of these. Type to search.
				</p>
			) : null}
		</section>
	);
}

function show(sort: Sort): (value: number) => string {
	return sort === "bytes" ? bytes : sort === "calls" ? count : duration;
}

/** The files of an answer. Calls without a file have no offsets. */
function rowsOf(data: Columns): FileRow[] {
	const labels = data.texts("label");
	const of = (name: string) => data.f64(name);
	const [moved, read, written] = [of("bytes"), of("bytes_read"), of("bytes_written")];
	const [calls, spent] = [of("calls"), of("time_ns")];
	const [faults, inFaults] = [of("faults"), of("fault_ns")];
	const types = data.texts("type");
	return data.texts("key").flatMap((key, i) => {
		if (key === null || key === "" || !Number.isFinite(Number(key))) return [];
		return [
			{
				file: Number(key),
				path: labels[i] ?? null,
				bytes: moved[i] ?? 0,
				read: read[i] ?? Number.NaN,
				written: written[i] ?? Number.NaN,
				calls: calls[i] ?? 0,
				time: (spent[i] ?? 0) + (inFaults[i] || 0),
				type: types[i] ?? null,
				faults: faults[i] || 0,
			},
		];
	});
}

interface LineProps {
	entry: Entry;
	sort: Sort;
	share: number;
	/** In a folder, the part of the path that is not said above. */
	name: string | null;
	current: boolean;
	choose: (files: readonly number[]) => void;
}

function Line({ entry, sort, share, name, current, choose }: LineProps) {
	const theme = useTheme();
	const path = entry.path ?? "unknown path";
	const split = Number.isFinite(entry.read) && entry.bytes > 0;
	const reading = split ? entry.read / entry.bytes : 1;
	const parts = split
		? `${bytes(entry.read)} read, ${bytes(entry.written)} written`
		: `${bytes(entry.bytes)} read or written`;
	const faults = entry.faults > 0 ? counted(entry.faults, "page fault") : "";
	const again = entry.files.length > 1 ? `${entry.files.length} files in turn under this name` : "";
	return (
		<li>
			<button
				type="button"
				aria-current={current}
				title={[visible(path), [counted(entry.calls, "call"), parts, faults, again].filter(Boolean).join(", ")].join(
					"\n",
				)}
				onClick={() => choose(entry.files)}
			>
				<span className="path cut-start mono">
					<bdi dir="ltr">{visible(name ?? path)}</bdi>
					{entry.files.length > 1 ? <span className="faint"> ×{entry.files.length}</span> : null}
				</span>
				<span className="faint">
					{sort === "bytes" && entry.bytes === 0 && faults ? faults : show(sort)(amountOf(entry, sort))}
				</span>
				<span className="picker-bar" style={{ width: `${share * 100}%` }}>
					<span style={{ flex: reading, background: colorOf("series", split ? "read" : "calls", theme) }} />
					<span style={{ flex: 1 - reading, background: colorOf("series", "written", theme) }} />
				</span>
			</button>
		</li>
	);
}
