import type { TopBy } from "../../api/session";
import { Panel, Shown } from "../../components/panel";
import { Path, Text } from "../../components/text";
import { colourOf, type Kind } from "../../lib/colour";
import type { ListMember } from "../../lib/filters";
import { bytes, count, duration, exact, exactDuration } from "../../lib/format";
import { useColumns } from "../../state/session";
import { toggleFilter, useParam } from "../../state/store";
import { useTheme } from "../../state/theme";

const TITLES: Partial<Record<TopBy, string>> = { file: "Files", syscall: "Syscalls", thread: "Threads" };
const MEMBERS: Partial<Record<TopBy, ListMember>> = { file: "file", syscall: "syscall", thread: "tid" };
const ROWS = 12;

const SORTS = [
	["time_ns", "Time"],
	["calls", "Calls"],
	["bytes", "Bytes"],
	["errors", "Errors"],
	["p99_ns", "p99"],
] as const;

/** The files, calls or threads with the most of something; a click filters by one. */
export function Top({ by }: { by: TopBy }) {
	const theme = useTheme();
	const [sort, setSort] = useParam(`sort_${by}`, "time_ns");
	const top = useColumns({ path: "top", params: { by, sort, limit: ROWS } });
	const member = MEMBERS[by];
	return (
		<Panel title={TITLES[by] ?? by}>
			<Shown of={top} height={(ROWS + 1) * 26} empty={(data) => data.rows === 0}>
				{(data) => {
					const keys = data.texts("key");
					const labels = data.texts("label");
					const calls = data.f64("calls");
					const errors = data.f64("errors");
					const read = data.f64("bytes_read");
					const written = data.f64("bytes_written");
					const time = data.f64("time_ns");
					const p99 = data.f64("p99_ns");
					const value: Record<string, (i: number) => number> = {
						time_ns: (i) => time[i] ?? 0,
						calls: (i) => calls[i] ?? 0,
						bytes: (i) => (read[i] ?? 0) + (written[i] ?? 0),
						errors: (i) => errors[i] ?? 0,
						p99_ns: (i) => p99[i] ?? 0,
					};
					const of = value[sort] ?? value["time_ns"];
					let most = 0;
					for (let i = 0; i < data.rows; i += 1) most = Math.max(most, of?.(i) ?? 0);
					return (
						<table className={`figures top-${by}`}>
							<thead>
								<tr>
									<th>{by === "file" ? "Path" : "Name"}</th>
									{SORTS.map(([id, title]) => (
										<th
											key={id}
											className="number"
											style={{ width: 74 }}
											aria-sort={sort === id ? "descending" : undefined}
										>
											<button type="button" onClick={() => setSort(id)}>
												{title}
											</button>
										</th>
									))}
								</tr>
							</thead>
							<tbody>
								{keys.map((key, i) => (
									<tr
										key={key ?? i}
										className="link"
										title="Click: filter by it. Alt+click: all but it."
										onClick={(event) =>
											member && key && toggleFilter(member, member === "syscall" ? key : Number(key), event.altKey)
										}
									>
										<td>
											<span
												className="bar"
												style={{
													width: `${most > 0 ? ((of?.(i) ?? 0) / most) * 100 : 0}%`,
													background: colourOf(by as Kind, key ?? "none", theme),
												}}
											/>
											{by === "file" ? (
												<Path of={labels[i] ?? key ?? "no file"} />
											) : (
												<Text of={labels[i] ?? key ?? "none"} />
											)}
											{by === "thread" ? <span className="faint"> {key}</span> : null}
										</td>
										<td className="number" title={exactDuration(time[i] ?? 0)}>
											{duration(time[i] ?? 0)}
										</td>
										<td className="number" title={exact(calls[i] ?? 0)}>
											{count(calls[i] ?? 0)}
										</td>
										<td className="number" title={`${exact(read[i] ?? 0)} read, ${exact(written[i] ?? 0)} written`}>
											{bytes((read[i] ?? 0) + (written[i] ?? 0))}
										</td>
										<td className={(errors[i] ?? 0) > 0 ? "number danger" : "number faint"}>{count(errors[i] ?? 0)}</td>
										<td className="number">{duration(p99[i] ?? Number.NaN)}</td>
									</tr>
								))}
							</tbody>
						</table>
					);
				}}
			</Shown>
		</Panel>
	);
}
