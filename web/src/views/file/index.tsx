// One file: where in it was read, written and touched through mappings, when, by whom and how fast.

import { useMemo, useRef, useState } from "react";
import type { Threads } from "../../api/types";
import { RequestCard } from "../../components/request/card";
import { Empty } from "../../components/states";
import { Path } from "../../components/text";
import { useSize } from "../../components/useSize";
import { bytes, counted, exact, percent } from "../../lib/format";
import { useColumns, useJson, useSession } from "../../state/session";
import { store, usePage, useParam } from "../../state/store";
import { type Accesses, accessesOf, type Figures as FigureValues, patternsOf } from "./accesses";
import { directoryOf, parseFiles } from "./groups";
import { Picker } from "./Picker";
import { Plot } from "./Plot";
import { PART, usePart } from "./part";
import { verdictText } from "./verdict";
import "./style.css";

/** A cell of the grid is as many pixels wide and high; on a wide screen one more, or single ones are not seen. */
const CELL = 2;
const WIDE = 1600;
/** Of the panel's height and width, what the plot's frame does not have. */
const HEAD = 44;
const AXES = 78;
/** Sizes are asked for in such steps, so that a window that is dragged larger is not asked for at every pixel. */
const ROUND = 64;
/** Files whose paths are asked for. */
const MOST_NAMED = 1000;

export default function File() {
	const page = usePage();
	const { live } = useSession();
	const [param] = useParam("file", "");
	const [first, setFirst] = useState<readonly number[] | null | undefined>(undefined);
	const box = useRef<HTMLDivElement>(null);
	const { width, height } = useSize(box);

	const named = parseFiles(param);
	// A filter for files shows these; one for a single file is enough to choose it.
	const filtered = page.filter.file ?? [];
	const chosen = filtered.length === 1 ? filtered : named.length > 0 ? named : (first ?? []);
	const files = chosen.join(",");
	// While a recording goes on another file may come to have the most: the picture stays with the one that is shown.
	const found = (next: readonly number[] | null) => setFirst((before) => (live && before ? before : next));
	const choose = (next: readonly number[]) => {
		// A filter for one file and a view of another would show nothing.
		const filter = page.filter.file ? { ...page.filter, file: [...next] } : page.filter;
		store.go({ params: { file: next.join(","), [PART]: null }, filter, rid: null });
	};

	const plot = Math.max(220, height - HEAD);
	const cell = width > WIDE ? CELL + 1 : CELL;
	const across = cells(width - AXES, cell);
	const up = cells(plot - 32, cell);
	const part = usePart();
	const ends: Record<string, number> = part ? { low: part.from, high: part.to } : {};
	const offsets = useColumns(
		files !== "" && width > 0
			? { path: "offsets", params: { file: files, width: across, height: up, unique: 0, ...ends }, pixels: across }
			: null,
	);
	const accesses = useMemo(() => (offsets.data ? accessesOf(offsets.data) : null), [offsets.data]);
	// Of many accesses counting each byte once takes longer than the picture: it comes after it.
	const many = accesses?.what.mode === "grid" && !offsets.stale;
	const counted = useColumns(
		many && files !== "" ? { path: "offsets", params: { file: files, width: 1, height: 1, unique: 1, ...ends } } : null,
	);
	const figures = useMemo<FigureValues | null>(() => {
		if (!accesses) return null;
		if (accesses.what.mode === "points") return accesses.figures;
		const of = (name: string) => counted.data?.metaNumber(name) ?? Number.NaN;
		return {
			...accesses.figures,
			readUnique: of("read_unique_bytes"),
			writtenUnique: of("written_unique_bytes"),
			...(counted.data ? patternsOf(counted.data) : { reads: null, writes: null, touches: null, threads: 0 }),
		};
	}, [accesses, counted.data]);
	const about = useColumns(
		files === ""
			? null
			: {
					path: "top",
					params: { by: "file", sort: "bytes", limit: MOST_NAMED },
					windowed: false,
					filtered: false,
					filter: { file: [...chosen] },
				},
	);
	const paths = about.data ? [...new Set(about.data.texts("label"))] : [];
	const path = paths.length === 1 ? (paths[0] ?? null) : null;
	const title = path ?? (paths.length > 1 ? `${paths.length} files in ${common(paths)}` : "");
	const names = useNames();

	return (
		<div className={page.rid === null ? "file-view" : "file-view with-card"}>
			<Picker chosen={chosen} choose={choose} found={found} />
			<div className="file-main">
				<header className="file-head">
					{files === "" ? null : (
						<>
							<h1 className="cut">
								<Path of={title} />
								{path !== null && chosen.length > 1 ? (
									<span
										className="faint"
										title="The file was removed or replaced, and made again under the same name: all of them are shown"
									>
										{" "}
										{chosen.length} files in turn
									</span>
								) : null}
							</h1>
							<Verdict figures={figures} counting={counted.loading} />
							<Figures accesses={accesses} figures={figures} counting={counted.loading} />
						</>
					)}
				</header>
				<div className="file-box" ref={box} aria-busy={files === "" && first === undefined}>
					{files === "" ? (
						first === null ? (
							<Empty title="No file was read, written, or mapped in this window">
								Widen the window (0), take a filter away, or choose a file.
							</Empty>
						) : null
					) : (
						<Plot of={offsets} accesses={accesses} path={path} names={names} height={plot} />
					)}
				</div>
			</div>
			{page.rid === null ? null : (
				<aside className="file-card" aria-label="Selected call">
					<RequestCard rid={page.rid} />
				</aside>
			)}
		</div>
	);
}

function cells(pixels: number, cell: number): number {
	return Math.max(ROUND, Math.floor(pixels / cell / ROUND) * ROUND);
}

function useNames(): ReadonlyMap<number, string> {
	const threads = useJson<Threads>({ path: "threads", filtered: false, windowed: false });
	return useMemo(() => {
		const made = new Map<number, string>();
		for (const thread of threads.data?.threads ?? []) if (thread.comm !== null) made.set(thread.tid, thread.comm);
		return made;
	}, [threads.data]);
}

interface FiguresProps {
	accesses: Accesses | null;
	figures: FigureValues | null;
	counting: boolean;
}

function Figures({ accesses, figures, counting }: FiguresProps) {
	// Of a file that is used through mappings alone, no call has bytes.
	const mapped = figures !== null && figures.faults > 0 && figures.read + figures.written === 0;
	return (
		<dl className="file-figures" aria-busy={accesses === null || counting}>
			{mapped ? null : <Bytes figures={figures} />}
			<div title="Page faults on mappings of the file. Further touches of a mapped page take none, and how many bytes of it a program uses is not known: they are in no sum of bytes.">
				<dt>Page faults</dt>
				<dd>{figures ? exact(figures.faults) : "–"}</dd>
			</div>
		</dl>
	);
}

function Bytes({ figures }: { figures: FigureValues | null }) {
	const repeated = (all: number, unique: number) => (Number.isNaN(unique) ? unique : Math.max(0, all - unique));
	return (
		<>
			<Figure name="Read" of={figures?.read} />
			<Figure name="distinct" of={figures?.readUnique} title="Bytes of the file that were read at least once" />
			<Figure
				name="re-read"
				of={figures ? repeated(figures.read, figures.readUnique) : undefined}
				whole={figures?.read}
				title="Bytes that had been read before in this window"
			/>
			<Figure name="Written" of={figures?.written} />
			<Figure name="distinct" of={figures?.writtenUnique} title="Bytes of the file that were written at least once" />
			<Figure
				name="overwritten"
				of={figures ? repeated(figures.written, figures.writtenUnique) : undefined}
				whole={figures?.written}
				title="Bytes that had been written before in this window"
			/>
		</>
	);
}

/** How the file is read, written and touched, in words. */
function Verdict({ figures, counting }: { figures: FigureValues | null; counting: boolean }) {
	const text = figures ? verdictText(figures) : "";
	const accessed = figures !== null && figures.read + figures.written > 0;
	const touched = figures !== null && figures.faults > 0;
	const single = `One read or write${figures?.threads === 1 ? "" : " per thread"}: no pattern`;
	const otherwise =
		figures === null || counting ? "Counting …" : accessed ? single : touched ? "One page fault: no pattern" : "";
	return (
		<p
			className="file-verdict"
			title="Sequential: a call begins where the one before of the same thread and direction ended. A pass begins when a call goes back to a lower offset; of page faults that go backward, to a higher one. Counted over all calls in the window."
		>
			{text || otherwise || "No reads or writes with a known offset"}
		</p>
	);
}

/** The directory that all paths are in. */
function common(paths: readonly (string | null)[]): string {
	const known = paths.flatMap((path) => (path === null ? [] : [directoryOf(path).split("/")]));
	const [one = [], ...others] = known;
	let length = one.length;
	for (const other of others) {
		let same = 0;
		while (same < length && other[same] === one[same]) same += 1;
		length = same;
	}
	return one.slice(0, length).join("/") || "/";
}

interface FigureProps {
	name: string;
	of: number | undefined;
	/** What it is a share of. */
	whole?: number | undefined;
	title?: string;
}

function Figure({ name, of, whole, title }: FigureProps) {
	const value = of ?? Number.NaN;
	return (
		<div title={`${title ? `${title}: ` : ""}${counted(value, "byte")}`}>
			<dt>{name}</dt>
			<dd>
				{bytes(value)}
				{whole !== undefined && whole > 0 && Number.isFinite(value) ? (
					<span className="more"> {percent(value / whole)}</span>
				) : null}
			</dd>
		</div>
	);
}
