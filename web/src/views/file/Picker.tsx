// The files of the session: searched by a part of their path, the one with the most of something first.

import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Shown } from "../../components/panel";
import { Segmented } from "../../components/segmented";
import { colorOf } from "../../lib/color";
import { bytes, count, duration, exact, visible } from "../../lib/format";
import { useShortcut } from "../../state/keys";
import { useColumns } from "../../state/session";
import { useParam } from "../../state/store";
import { useTheme } from "../../state/theme";

const MOST = 100;
/** Typing rests this long before the server is asked. */
const REST_MS = 200;

const SORTS = [
	["bytes", "bytes"],
	["calls", "calls"],
	["time_ns", "time"],
] as const;

interface Props {
	chosen: number | null;
	choose: (file: number, path: string | null) => void;
	/** The files are known: the first is what is shown while none is chosen. */
	found: (first: { file: number; path: string | null } | null) => void;
}

export function Picker({ chosen, choose, found }: Props) {
	const theme = useTheme();
	const [sort, setSort] = useParam("order", "bytes");
	const [typed, setTyped] = useState("");
	const [wanted, setWanted] = useState("");
	const field = useRef<HTMLInputElement>(null);
	const list = useRef<HTMLUListElement>(null);
	useEffect(() => {
		const timer = setTimeout(() => setWanted(typed.trim()), REST_MS);
		return () => clearTimeout(timer);
	}, [typed]);
	useShortcut(["o"], "Find a file", "File", () => field.current?.focus());
	const by = SORTS.find(([id]) => id === sort)?.[0] ?? "bytes";
	const top = useColumns({
		path: "top",
		params: { by: "file", sort: by, limit: MOST },
		...(wanted ? { filter: { path: wanted } } : {}),
	});

	const data = top.stale && wanted === "" ? undefined : top.data;
	const keys = data?.texts("key") ?? [];
	const labels = data?.texts("label") ?? [];
	// Calls without a file have no offsets.
	const rows = keys.flatMap((key, i) => (key !== null && Number.isFinite(Number(key)) && key !== "" ? [i] : []));
	const first = rows[0];
	const firstFile = first === undefined ? null : Number(keys[first]);
	const firstPath = first === undefined ? null : (labels[first] ?? null);
	const told = useRef(found);
	told.current = found;
	useEffect(() => {
		if (data && wanted === "") told.current(firstFile === null ? null : { file: firstFile, path: firstPath });
	}, [data, wanted, firstFile, firstPath]);

	const onKey = (event: KeyboardEvent) => {
		const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
		if (step !== 0) {
			const buttons = [...(list.current?.querySelectorAll("button") ?? [])];
			const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
			const next = buttons[Math.max(0, Math.min(buttons.length - 1, at + step))];
			next?.focus();
		} else if (event.key === "Enter" && event.target === field.current && firstFile !== null) {
			choose(firstFile, firstPath);
		} else if (event.key === "Escape" && event.target === field.current) {
			setTyped("");
			field.current?.blur();
		} else return;
		event.preventDefault();
		event.stopPropagation();
	};

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
				empty={() => rows.length === 0}
				emptyTitle={wanted ? "No path has that in it" : "No files here"}
				emptyText={wanted ? "A part of the path is enough; upper and lower case differ." : undefined}
			>
				{(shown) => {
					const moved = shown.f64("bytes");
					// Null where sums of many calls do not tell them apart.
					const read = shown.f64("bytes_read");
					const written = shown.f64("bytes_written");
					const calls = shown.f64("calls");
					const spent = shown.f64("time_ns");
					const faults = shown.f64("faults");
					const value = (i: number) =>
						by === "bytes" ? (moved[i] ?? 0) : by === "calls" ? (calls[i] ?? 0) : (spent[i] ?? 0);
					const format = by === "bytes" ? bytes : by === "calls" ? count : duration;
					let most = 0;
					for (const i of rows) most = Math.max(most, value(i));
					return (
						<ul className="picker-list" ref={list}>
							{rows.map((i) => {
								const file = Number(keys[i]);
								const path = labels[i] ?? null;
								const share = most > 0 ? value(i) / most : 0;
								const split = Number.isFinite(read[i]) && (moved[i] ?? 0) > 0;
								const reading = split ? (read[i] || 0) / (moved[i] || 1) : 1;
								const parts = split
									? `${bytes(read[i] || 0)} read, ${bytes(written[i] || 0)} written`
									: `${bytes(moved[i] ?? 0)} read or written`;
								return (
									<li key={file}>
										<button
											type="button"
											aria-current={file === chosen}
											title={`${visible(path ?? `file ${file}`)}\n${exact(calls[i] ?? 0)} calls, ${parts}${(faults[i] ?? 0) > 0 ? `, ${exact(faults[i] ?? 0)} ${faults[i] === 1 ? "page fault" : "page faults"}` : ""}`}
											onClick={() => choose(file, path)}
										>
											<span className="path cut-start mono">
												<bdi dir="ltr">{visible(path ?? `file ${file}`)}</bdi>
											</span>
											<span className="faint">
												{by === "bytes" && value(i) === 0 && (faults[i] ?? 0) > 0
													? `${count(faults[i] ?? 0)} ${faults[i] === 1 ? "fault" : "faults"}`
													: format(value(i))}
											</span>
											<span className="picker-bar" style={{ width: `${share * 100}%` }}>
												<span
													style={{ flex: reading, background: colorOf("series", split ? "read" : "calls", theme) }}
												/>
												<span style={{ flex: 1 - reading, background: colorOf("series", "written", theme) }} />
											</span>
										</button>
									</li>
								);
							})}
						</ul>
					);
				}}
			</Shown>
			{rows.length >= MOST ? (
				<p className="faint picker-more">The first {MOST}; type a part of the path for others.</p>
			) : null}
		</section>
	);
}
