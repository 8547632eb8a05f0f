// One file: where in it was read, written and touched through mappings, when, by whom and how fast.

import { useMemo, useRef, useState } from "react";
import type { Threads } from "../../api/types";
import { RequestCard } from "../../components/request/card";
import { Empty } from "../../components/states";
import { Path } from "../../components/text";
import { useSize } from "../../components/useSize";
import { bytes, exact, percent } from "../../lib/format";
import { useColumns, useJson, useSession } from "../../state/session";
import { store, usePage, useParam } from "../../state/store";
import { type Accesses, accessesOf, type Figures as FigureValues } from "./accesses";
import { Picker } from "./Picker";
import { Plot } from "./Plot";
import { PART, usePart } from "./part";
import "./style.css";

/** A cell of the grid is as many pixels wide and high; on a wide screen one more, or single ones are not seen. */
const CELL = 2;
const WIDE = 1600;
/** Of the panel's height and width, what the plot's frame does not have. */
const HEAD = 44;
const AXES = 78;
/** Sizes are asked for in such steps, so that a window that is dragged larger is not asked for at every pixel. */
const ROUND = 64;

interface FirstFile {
	file: number;
	path: string | null;
}

export default function File() {
	const page = usePage();
	const { live } = useSession();
	const [param] = useParam("file", "");
	const [first, setFirst] = useState<FirstFile | null | undefined>(undefined);
	const box = useRef<HTMLDivElement>(null);
	const { width, height } = useSize(box);

	const only = page.filter.file?.length === 1 ? page.filter.file[0] : undefined;
	const named = param !== "" && Number.isFinite(Number(param)) ? Number(param) : undefined;
	const file = only ?? named ?? first?.file ?? null;
	// While a recording goes on another file may come to have the most: the picture stays with the one that is shown.
	const found = (next: FirstFile | null) => setFirst((before) => (live && before ? before : next));
	const choose = (next: number) => {
		// A filter for one file and a view of another would show nothing.
		const filter = page.filter.file ? { ...page.filter, file: [next] } : page.filter;
		store.go({ params: { file: String(next), [PART]: null }, filter, rid: null });
	};

	const plot = Math.max(220, height - HEAD);
	const cell = width > WIDE ? CELL + 1 : CELL;
	const across = cells(width - AXES, cell);
	const up = cells(plot - 32, cell);
	const part = usePart();
	const ends: Record<string, number> = part ? { low: part.from, high: part.to } : {};
	const offsets = useColumns(
		file !== null && width > 0
			? { path: "offsets", params: { file, width: across, height: up, unique: 0, ...ends }, pixels: across }
			: null,
	);
	const accesses = useMemo(() => (offsets.data ? accessesOf(offsets.data) : null), [offsets.data]);
	// Of many accesses counting each byte once takes longer than the picture: it comes after it.
	const many = accesses?.what.mode === "grid" && !offsets.stale;
	const counted = useColumns(
		many && file !== null ? { path: "offsets", params: { file, width: 1, height: 1, unique: 1, ...ends } } : null,
	);
	const figures = useMemo<FigureValues | null>(() => {
		if (!accesses) return null;
		if (accesses.what.mode === "points") return accesses.figures;
		const of = (name: string) => counted.data?.metaNumber(name) ?? Number.NaN;
		return {
			...accesses.figures,
			readUnique: of("read_unique_bytes"),
			writtenUnique: of("written_unique_bytes"),
			readSequential: counted.data?.metaNumber("read_sequential") ?? null,
			writtenSequential: counted.data?.metaNumber("written_sequential") ?? null,
		};
	}, [accesses, counted.data]);
	const about = useColumns(
		file === null
			? null
			: {
					path: "top",
					params: { by: "file", sort: "bytes", limit: 1 },
					windowed: false,
					filtered: false,
					filter: { file: [file] },
				},
	);
	const path = about.data && about.data.rows > 0 ? about.data.text("label", 0) : null;
	const names = useNames();

	return (
		<div className={page.rid === null ? "file-view" : "file-view with-card"}>
			<Picker chosen={file} choose={choose} found={found} />
			<div className="file-main">
				{file === null ? null : (
					<header className="file-head">
						<h1 className="cut">
							<Path of={path ?? `file ${file}`} />
						</h1>
						<Figures accesses={accesses} figures={figures} counting={counted.loading} />
					</header>
				)}
				<div className="file-box" ref={box} aria-busy={file === null && first === undefined}>
					{file === null ? (
						first === null ? (
							<Empty title="No file was used in this window">Widen the window (0) or take a filter away.</Empty>
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
	const repeated = (all: number, unique: number) => (Number.isNaN(unique) ? unique : Math.max(0, all - unique));
	return (
		<dl className="file-figures" aria-busy={accesses === null || counting}>
			<Figure name="Read" of={figures?.read} />
			<Figure name="of which unique" of={figures?.readUnique} title="Bytes of the file that were read at least once" />
			<Figure
				name="read again"
				of={figures ? repeated(figures.read, figures.readUnique) : undefined}
				whole={figures?.read}
				title="Bytes that had been read before in this window"
			/>
			<Figure name="Written" of={figures?.written} />
			<Figure
				name="of which unique"
				of={figures?.writtenUnique}
				title="Bytes of the file that were written at least once"
			/>
			<Figure
				name="written again"
				of={figures ? repeated(figures.written, figures.writtenUnique) : undefined}
				whole={figures?.written}
				title="Bytes that had been written before in this window"
			/>
			<Sequential figures={figures} counting={counting} />
			<div title="Page faults on mappings of the file. Further touches of a mapped page take none, and how many bytes of it a program uses is not known: they are in no sum of bytes.">
				<dt>Page faults</dt>
				<dd>{figures ? exact(figures.faults) : "–"}</dd>
			</div>
		</dl>
	);
}

/** How much of the reads, and of the writes, goes on where the one before ended. */
function Sequential({ figures, counting }: { figures: FigureValues | null; counting: boolean }) {
	const share = (of: number | null | undefined) => (typeof of === "number" ? percent(of) : "–");
	const why = (of: number | null | undefined) =>
		typeof of === "number" ? percent(of) : counting ? "being counted" : "no thread made two in this window";
	const [read, written] = [figures?.readSequential, figures?.writtenSequential];
	return (
		<div
			className="file-sequential"
			title={`Calls that begin where the one before of the same thread ended. Reads: ${why(read)}. Writes: ${why(written)}.`}
		>
			<dt>Sequential: read / written</dt>
			<dd>
				{share(read)} / {share(written)}
			</dd>
		</div>
	);
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
		<div title={`${title ? `${title}: ` : ""}${exact(value)} bytes`}>
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
