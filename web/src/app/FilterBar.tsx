// The one filter bar: chips of what is asked for, and a field that suggests what the session has.

import { useDeferredValue, useId, useMemo, useRef, useState } from "react";
import type { Columns } from "../api/arrow";
import { LAYERS } from "../api/layers";
import { columns, selectionText, sessionPath, type TilesBy } from "../api/session";
import type { Filter, LayerState, ThreadRow, Threads } from "../api/types";
import { Text } from "../components/text";
import type { ListMember } from "../lib/filters";
import { chipsOf, isNumeric, isTenant, mergeFilters, parseTyped, withoutMember } from "../lib/filters";
import { count, counted, duration, shortPath, visible } from "../lib/format";
import { sumsOf } from "../lib/sums";
import { meaningOf, offersOf } from "../lib/typed";
import { useShortcut } from "../state/keys";
import { client } from "../state/server";
import { useColumns, useJson, useSession } from "../state/session";
import { setFilter, store, useRestedPage } from "../state/store";

interface Suggestion {
	kind: string;
	label: string;
	figure: string;
	filter: Filter;
}

/** What the pyramid knows of the whole session, however large. */
const SOURCES: readonly { by: TilesBy; member: ListMember; kind: string; most: number }[] = [
	{ by: "syscall", member: "syscall", kind: "syscall", most: 60 },
	{ by: "class", member: "class", kind: "class", most: 10 },
	{ by: "process", member: "pid", kind: "process", most: 60 },
	{ by: "thread", member: "tid", kind: "thread", most: 60 },
	{ by: "file", member: "file", kind: "file", most: 300 },
];

/** Errors are counted by reading every call, which is done up to so many. */
const MOST_READ = 3e6;

export function FilterBar() {
	const { filter } = useRestedPage();
	const [open, setOpen] = useState(false);
	const input = useRef<HTMLInputElement>(null);
	useShortcut(["/"], "Filter: type a path, a call, > 1ms, error, ...", "Everywhere", () => input.current?.focus());
	return (
		<div className="chips">
			{chipsOf(filter).map((chip) => (
				<span className="chip" key={chip.member}>
					<span className="chip-name">{chip.not ? `${chip.name} is not` : chip.name}</span>
					<span className="chip-value cut">
						{chip.member === "file" || chip.member === "not_file" ? (
							<Files ids={chip.values} />
						) : (
							<Text of={chip.values.join(", ")} />
						)}
					</span>
					<button
						type="button"
						aria-label={`Remove the filter on ${chip.name}`}
						title="Remove"
						onClick={() => setFilter(withoutMember(filter, chip.member))}
					>
						×
					</button>
				</span>
			))}
			<Field input={input} open={open} setOpen={setOpen} />
			{chipsOf(filter).length > 1 ? (
				<button type="button" className="button plain" onClick={() => setFilter({})}>
					Clear
				</button>
			) : null}
		</div>
	);
}

/** The paths of files: their ids are of no use to readers. */
function Files({ ids }: { ids: readonly (string | number)[] }) {
	const known = useColumns({
		path: "top",
		params: { by: "file", limit: ids.length },
		windowed: false,
		filtered: false,
		filter: { file: ids.map(Number) },
	});
	const keys = known.data?.texts("key") ?? [];
	const labels = known.data?.texts("label") ?? [];
	const names = ids.map((id) => labels[keys.indexOf(String(id))] ?? `file ${id}`);
	return <Text of={names.join(", ")} />;
}

interface FieldProps {
	input: React.RefObject<HTMLInputElement | null>;
	open: boolean;
	setOpen: (open: boolean) => void;
}

function Field({ input, open, setOpen }: FieldProps) {
	const { filter } = useRestedPage();
	const [text, setText] = useState("");
	const [chosen, setChosen] = useState(0);
	const id = useId();
	const [doubt, setDoubt] = useState<Doubt | null>(null);
	// Who clicks on an offer leaves the field first.
	const all = useSuggestions(open || doubt !== null);
	const entries = useEntries(all, useDeferredValue(text));
	const at = Math.min(chosen, entries.length - 1);
	const session = useSession();
	const add = (more: Filter | null) => {
		if (more) setFilter(mergeFilters(store.get().filter, more));
		// The result is what is looked at next.
		setOpen(false);
		setText("");
		setChosen(0);
		setDoubt(null);
	};
	/** What is typed counts, though the list may be a step behind; what nothing can match is asked back. */
	const enter = async () => {
		const meaning = meaningOf(text, all);
		if (meaning === null) add(entries[0]?.filter ?? null);
		else if ("filter" in meaning) add(meaning.filter);
		else if ("problem" in meaning) setDoubt({ typed: text, problem: meaning.problem });
		else {
			const { path } = meaning;
			const query = selectionText({ filter: { path } }, { by: "file", sort: "calls", limit: 1 });
			const known = await columns(client, sessionPath(session.id, `/top${query}`)).catch(() => null);
			// Without an answer the filter itself will tell.
			if (known?.rows !== 0) add({ path });
			else setDoubt({ typed: text, problem: `No path contains “${path}”`, anyway: { path } });
		}
	};
	return (
		<div className="filter-input">
			<input
				ref={input}
				className="field"
				type="text"
				role="combobox"
				aria-expanded={open}
				aria-controls={id}
				aria-label="Filter"
				placeholder="Filter: path, syscall:fsync, unit:nginx, !comm:bash, > 1ms, error"
				spellCheck={false}
				autoComplete="off"
				value={text}
				onChange={(event) => {
					setText(event.target.value);
					setOpen(true);
					setChosen(0);
				}}
				onFocus={() => setOpen(true)}
				onBlur={() => setOpen(false)}
				onKeyDown={(event) => {
					if (event.key === "Escape") event.currentTarget.blur();
					else if (event.key === "ArrowDown") setChosen(Math.min(at + 1, entries.length - 1));
					else if (event.key === "ArrowUp") setChosen(Math.max(at - 1, 0));
					else if (event.key === "Enter") {
						if (at > 0) add(entries[at]?.filter ?? null);
						else void enter();
					} else if (event.key === "Backspace" && text === "") {
						const last = chipsOf(filter).at(-1);
						if (last) setFilter(withoutMember(filter, last.member));
						return;
					} else return;
					event.preventDefault();
				}}
			/>
			{doubt && doubt.typed === text ? (
				<Doubtful doubt={doubt} offers={offersOf(doubt.typed, all)} add={add} close={() => setDoubt(null)} />
			) : open ? (
				<Suggestions id={id} entries={entries} at={at} add={add} />
			) : null}
		</div>
	);
}

/** A text that is no filter, or one that nothing matches. */
interface Doubt {
	typed: string;
	problem: string;
	/** It can be applied all the same. */
	anyway?: Filter;
}

interface DoubtfulProps {
	doubt: Doubt;
	/** Names of the session may come after the doubt. */
	offers: readonly Suggestion[];
	add: (filter: Filter) => void;
	close: () => void;
}

function Doubtful({ doubt, offers, add, close }: DoubtfulProps) {
	return (
		<div className="suggestions doubt" role="alert">
			<p>
				{visible(doubt.problem)}.{offers.length > 0 ? " Did you mean" : ""}
			</p>
			<div className="doubt-offers">
				{offers.map((offer) => (
					<button
						type="button"
						className="button"
						key={`${offer.kind} ${offer.label}`}
						onClick={() => add(offer.filter)}
					>
						{offer.kind}:{visible(offer.label)}
					</button>
				))}
				{doubt.anyway ? (
					<button type="button" className="button plain" onClick={() => doubt.anyway && add(doubt.anyway)}>
						Filter anyway
					</button>
				) : null}
				<button type="button" className="button plain" onClick={close}>
					Change it
				</button>
			</div>
		</div>
	);
}

/** What every session has: said here, so that nobody needs to know how it is typed. */
const ALWAYS: readonly Suggestion[] = [
	{ kind: "error", label: "any error", figure: "error", filter: { error: "any" } },
	{ kind: "error", label: "no error", figure: "ok", filter: { error: "none" } },
	{ kind: "duration", label: "from 1 ms", figure: "> 1ms", filter: { dur: [1e6, null] } },
	{ kind: "duration", label: "1 ms to 10 ms", figure: "1ms..10ms", filter: { dur: [1e6, 10e6] } },
	{ kind: "duration", label: "up to 50 µs", figure: "< 50us", filter: { dur: [null, 50e3] } },
];

/** Calls that went through a layer of which there are visits, as far as the session's description tells. */
function ofLayers(layers: readonly LayerState[]): Suggestion[] {
	const recorded = (name: string) => layers.some((layer) => layer.name === name && layer.recorded);
	const below = LAYERS.filter((layer) => layer.name !== "syscall" && recorded(layer.by));
	return below.map(({ name }) => ({
		kind: "layer",
		label: name,
		figure: "spent time there",
		filter: { layer: [name] },
	}));
}

function useSuggestions(wanted: boolean): Suggestion[] {
	const { stored, about } = useSession();
	const whole = { windowed: false, filtered: false } as const;
	const answers = SOURCES.map(({ by, most }) =>
		// biome-ignore lint/correctness/useHookAtTopLevel: the list never changes
		useColumns(wanted ? { path: "tiles", params: { by, top: most }, pixels: 1, ...whole } : null),
	);
	const errors = useColumns(
		wanted && stored < MOST_READ ? { path: "top", params: { by: "errno", sort: "calls", limit: 30 }, ...whole } : null,
	).data;
	const threads = useJson<Threads>(wanted ? { path: "threads", ...whole } : null).data;
	const tenants = useColumns(wanted ? { path: "questions/tenants", ...whole } : null).data;
	const data = answers.map((answer) => answer.data);
	// biome-ignore lint/correctness/useExhaustiveDependencies: the list has a fixed length
	return useMemo(
		() => [
			...data.flatMap((columns, i) => (columns ? ofSums(columns, i) : [])),
			...ofNames(threads?.threads ?? []),
			...(tenants ? ofTenants(tenants) : []),
			...ofLayers(about.layers),
			...ALWAYS,
			...(errors ? ofErrors(errors) : []),
		],
		[...data, threads, tenants, errors, about.layers],
	);
}

function figure(calls: number, time: number): string {
	return `${counted(calls, "call", "calls", count)}, ${duration(time)}`;
}

function ofSums(columns: Columns, index: number): Suggestion[] {
	const source = SOURCES[index];
	if (!source) return [];
	const numbered = source.member === "pid" || source.member === "tid";
	return sumsOf(columns).flatMap(({ key, label, calls, time }) => {
		const value = isNumeric(source.member) ? Number(key) : key;
		if (key === null || value === null || (typeof value === "number" && !Number.isFinite(value))) return [];
		return [
			{
				kind: source.kind,
				label: numbered ? `${label ?? ""} ${key}` : (label ?? key),
				figure: figure(calls, time),
				filter: { [source.member]: [value] },
			},
		];
	});
}

/** Names of threads, each with all threads that have it. */
function ofNames(threads: readonly ThreadRow[]): Suggestion[] {
	const names = new Map<string, { calls: number; time: number }>();
	for (const { comm, calls, time_ns } of threads) {
		if (comm === null) continue;
		const known = names.get(comm) ?? { calls: 0, time: 0 };
		names.set(comm, { calls: known.calls + calls, time: known.time + time_ns });
	}
	return [...names]
		.sort((a, b) => b[1].time - a[1].time)
		.map(([comm, { calls, time }]) => ({
			kind: "name",
			label: comm,
			figure: figure(calls, time),
			filter: { comm: [comm] },
		}));
}

/** Cgroups, units, pods, ... of the session's processes, and volumes of its files. */
function ofTenants(columns: Columns): Suggestion[] {
	const [values, labels, counts] = [columns.texts("value"), columns.texts("label"), columns.f64("count")];
	return columns.texts("kind").flatMap((kind, i) => {
		const value = values[i] ?? null;
		if (kind === null || value === null || !isTenant(kind)) return [];
		const [one, more] = kind === "volume" ? ["file", "files"] : ["process", "processes"];
		return [
			{
				kind,
				label: labels[i] ?? value,
				figure: counted(counts[i] ?? 0, one, more, count),
				filter: { [kind]: [value] },
			},
		];
	});
}

function ofErrors(columns: Columns): Suggestion[] {
	const calls = columns.f64("calls");
	return columns.texts("key").flatMap((key, i) =>
		key === null
			? []
			: [
					{
						kind: "error",
						label: key,
						figure: counted(calls[i] ?? 0, "call", "calls", count),
						filter: { error: [key] },
					},
				],
	);
}

/** What fits a typed text: the text itself as a filter, then what the session has. */
function useEntries(all: readonly Suggestion[], text: string): Suggestion[] {
	return useMemo(() => {
		const typed = parseTyped(text);
		const not = text.trim().startsWith("!");
		const wanted = text
			.trim()
			.replace(/^!/, "")
			.replace(/^[a-z]+[:=]/i, "")
			.toLowerCase();
		const matching = all.filter((s) => wanted === "" || s.label.toLowerCase().includes(wanted));
		const found = wanted === "" ? someOfEach(matching) : matching.slice(0, 12);
		return [
			...(typed ? [{ kind: "filter", label: describe(typed), figure: "", filter: typed }] : []),
			...found.flatMap((s) => {
				if (!not) return [s];
				const filter = negated(s.filter);
				return filter ? [{ ...s, label: `not ${s.label}`, filter }] : [];
			}),
		];
	}, [all, text]);
}

function someOfEach(all: readonly Suggestion[]): Suggestion[] {
	const seen = new Map<string, number>();
	return all.filter((s) => {
		const n = (seen.get(s.kind) ?? 0) + 1;
		seen.set(s.kind, n);
		return n <= 2;
	});
}

function inSight(element: HTMLElement | null): void {
	element?.scrollIntoView({ block: "nearest" });
}

interface ListProps {
	id: string;
	entries: readonly Suggestion[];
	at: number;
	add: (filter: Filter) => void;
}

function Suggestions({ id, entries, at, add }: ListProps) {
	return (
		<div id={id} className="suggestions" role="listbox" aria-label="Suggestions">
			{entries.map((entry, i) => (
				// biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus, as in every combobox
				// biome-ignore lint/a11y/useKeyWithClickEvents: the field takes the keys
				<div
					key={`${entry.kind} ${i}`}
					// The arrow keys lead to it also where the list is longer than its box.
					ref={i === at ? inSight : undefined}
					role="option"
					className="suggestion"
					aria-selected={i === at}
					onMouseDown={(event) => event.preventDefault()}
					onClick={() => add(entry.filter)}
				>
					<span className="kind">{entry.kind}</span>
					<bdi className="cut" title={visible(entry.label)}>
						{shortPath(entry.label, 60)}
					</bdi>
					<span className="figure">{entry.figure}</span>
				</div>
			))}
			{entries.length === 0 ? <div className="suggestion quiet">Type part of a path, or a name</div> : null}
		</div>
	);
}

function describe(filter: Filter): string {
	return chipsOf(filter)
		.map((chip) => `${chip.name}${chip.not ? " is not" : ""} ${chip.values.join(", ")}`)
		.join(", ");
}

/** Null for a range of durations, which has no opposite that is one range. */
function negated(filter: Filter): Filter | null {
	if (filter.dur) return null;
	if (filter.error === "any" || filter.error === "none") return { error: filter.error === "any" ? "none" : "any" };
	return Object.fromEntries(Object.entries(filter).map(([name, value]) => [`not_${name}`, value])) as Filter;
}
