// The canvas with the lanes: holds the tiles, draws a frame when something has changed, and answers the mouse.

import { useEffect, useMemo, useRef, useState } from "react";
import { isAbort } from "../../api/client";
import { columns as askColumns, filterText, selectionText, sessionPath } from "../../api/session";
import { NowEdge } from "../../components/now";
import { savePng } from "../../components/png";
import { Progress } from "../../components/states";
import { Tip } from "../../components/tip";
import { useSize } from "../../components/useSize";
import type { Span } from "../../lib/scale";
import { nameKey } from "../../lib/spans";
import { may } from "../../state/access";
import { useFailures } from "../../state/failures";
import { useShortcut } from "../../state/keys";
import { archive, client } from "../../state/server";
import { resolveWindow, useSession } from "../../state/session";
import { useCallAt } from "../../state/slowest";
import { store, usePage } from "../../state/store";
import { useTheme } from "../../state/theme";
import { decodeTile, type TileData } from "./decode";
import { listen } from "./gestures";
import { HitTip } from "./HitTip";
import { type Hit, hitAt, longestInSight } from "./hit";
import { Blocks, type Lane, type LaneSizes, laneSizes, RULER_HEIGHT, visibleLanes } from "./lanes";
import { type Below, useBelow } from "./layers";
import {
	type ColorBy,
	completeAt,
	isMissing,
	NAME_WIDTH,
	type Palette,
	Pictures,
	paint,
	palette,
	type Scene,
} from "./paint";
import { StatesKey } from "./StatesKey";
import { type SpanBar, type ThreadSpans, useThreadSpans } from "./spans";
import { type States, useStates } from "./states";
import { levelFor, TILE_BUCKETS, TileCache, type TileId, tileSpan, tilesIn, wantedTiles } from "./tiles";

/** Tiles and pictures that are kept: about 100 MB at most. */
const TILES = 220;
const PICTURES = 36;
const PARALLEL = 4;
/** A click on a sum shows this many of its buckets at least. */
const NEARER = 8;
/** After a failed request the next one waits. */
const REST_MS = 1500;

interface Hover {
	hit: Hit;
	x: number;
	y: number;
}

interface Props {
	rows: readonly Lane[];
	/** The layers below the calls have rows of their own. */
	layers: boolean;
	/** The states of the threads have a strip below the calls. */
	states: boolean;
	/** The application's spans have a strip above the calls. */
	spans: boolean;
	/** Says that no thread has calls in the window; null where some have. */
	quiet: string | null;
	by: ColorBy;
	/** Several processes that share a lane get lanes of their own, or share one again. */
	toggle: (group: string) => void;
}

export function Board({ rows, layers: withLayers, states: withStates, spans: withSpans, quiet, by, toggle }: Props) {
	const page = usePage();
	const session = useSession();
	const theme = useTheme();
	const isFailure = useFailures();
	const callAt = useCallAt();
	const holder = useRef<HTMLDivElement>(null);
	const canvas = useRef<HTMLCanvasElement>(null);
	const size = useSize(holder);
	const [hover, setHover] = useState<Hover | null>(null);
	const [failed, setFailed] = useState(false);
	const start = session.about.started_at_ns;
	const [inSight, setInSight] = useState("");
	const { below, rows: layers, loading: belowLoading } = useBelow(withLayers, inSight);
	const [missing, setMissing] = useState(true);
	const { states, loading: statesLoading } = useStates(withStates, inSight);
	const { spans, loading: spansLoading } = useThreadSpans(withSpans, inSight);
	const busy = (missing && !(archive && failed)) || belowLoading || statesLoading || spansLoading;
	const filter = filterText(page.filter);
	const span = resolveWindow(page.window, session.bounds);

	// A saved page may have the next window.
	// biome-ignore lint/correctness/useExhaustiveDependencies: another window is asked for
	useEffect(() => {
		if (archive) setFailed(false);
	}, [span.from, span.to]);

	// What the imperative part reads: always the newest.
	const newest = {
		rows,
		by,
		toggle,
		callAt,
		span,
		bounds: session.bounds,
		revision: session.revision,
		live: session.live,
		following: session.live && page.window.kind !== "range",
		size,
		theme,
		rid: page.rid,
		sizes: laneSizes(rows.length, size.height, layers.length, withStates, withSpans),
		states,
		spans,
		layers,
		below,
	};
	const now = useRef(newest);
	now.current = newest;
	const view = useRef({
		scroll: 0,
		frame: 0,
		marked: null as Span | null,
		hovered: null as number | null,
		pointed: null as number | null,
		colors: null as Palette | null,
		scene: null as Scene | null,
	});
	const draw = useRef<() => void>(() => {});
	const pictures = useMemo(() => new Pictures(PICTURES), []);
	const places = useMemo(() => new Blocks(), []);
	places.add(rows.flatMap((row) => row.members));

	// Tiles of another filter are others.
	// biome-ignore lint/correctness/useExhaustiveDependencies: the filter is read when a tile is loaded
	const tiles = useMemo(() => {
		pictures.clear();
		return new TileCache<TileData>({
			load: async (id: TileId, signal: AbortSignal) => {
				const own = tileSpan(id, start);
				const lanes = places.threads(id.block).join(",");
				const query = selectionText({ span: own, filter: store.get().filter, pixels: TILE_BUCKETS }, { lanes });
				const path = sessionPath(session.id, `/timeline${query}`);
				return decodeTile(await askColumns(client, path, signal), own);
			},
			arrived: (id) => {
				if (!archive) setFailed(false);
				// Coarser tiles tell of calls that go on in narrower ones.
				if (id.level > (view.current.scene?.level ?? 0)) pictures.clear();
				draw.current();
			},
			failed: (error) => {
				if (isAbort(error)) return;
				setFailed(true);
				// A saved page gains nothing by asking again.
				if (archive) cache.resume();
				else
					setTimeout(() => {
						cache.resume();
						draw.current();
					}, REST_MS);
			},
			capacity: TILES,
			parallel: PARALLEL,
		});
	}, [session.id, start, filter, pictures, places]);
	const cache = tiles;
	useEffect(() => () => tiles.clear(), [tiles]);

	// biome-ignore lint/correctness/useExhaustiveDependencies: the colors are those of the theme
	useEffect(() => {
		view.current.colors = palette();
	}, [theme]);

	useEffect(() => {
		draw.current = () => {
			if (view.current.frame === 0) view.current.frame = requestAnimationFrame(frame);
		};
		const frame = () => {
			view.current.frame = 0;
			const state = now.current;
			const context = canvas.current?.getContext("2d", { alpha: false });
			if (!context || !canvas.current || state.size.width === 0 || !view.current.colors) return;
			const scene = makeScene(context, state, view.current, tiles, pictures, places, start);
			resize(canvas.current, scene);
			ask(scene, state, tiles);
			paint(scene);
			view.current.scene = scene;
			setMissing(lacksTiles(scene));
			setInSight(scene.blocks.flatMap((block) => places.threads(block)).join(","));
		};
		draw.current();
		return () => {
			if (view.current.frame !== 0) cancelAnimationFrame(view.current.frame);
			view.current.frame = 0;
		};
	}, [tiles, pictures, places, start]);

	// Everything that is drawn comes from the state: draw after each change of it.
	useEffect(() => draw.current());

	useEffect(() => {
		const element = holder.current;
		if (!element) return;
		return listen({
			element,
			ruler: RULER_HEIGHT,
			keys: true,
			span: () => now.current.span,
			bounds: () => now.current.bounds,
			width: () => now.current.size.width,
			room: () => Math.max(0, allLanes(now.current) - now.current.size.height),
			scroll: () => view.current.scroll,
			show: (next) => {
				now.current.span = next;
				store.move({ kind: "range", ...next });
				draw.current();
			},
			scrollTo: (scroll) => {
				element.scrollTop = scroll;
			},
			mark: (marked) => {
				view.current.marked = marked;
				draw.current();
			},
			hover: (x, y) => {
				const scene = view.current.scene;
				if (!scene) return;
				const hit = hitAt(scene, x, y);
				const rid = hit?.kind === "call" || hit?.kind === "visit" ? hit.rid : null;
				view.current.hovered = rid;
				view.current.pointed = hit?.kind === "state" ? hit.row : null;
				element.classList.toggle("on-call", rid !== null);
				element.classList.toggle("leads-on", hit !== null && (hit.kind !== "lane" || hit.lane.group !== null));
				const box = element.getBoundingClientRect();
				setHover(hit ? { hit, x: box.left + x, y: box.top + y } : null);
				draw.current();
			},
			leave: () => {
				view.current.hovered = null;
				view.current.pointed = null;
				setHover(null);
				draw.current();
			},
			click: (x, y) => {
				const scene = view.current.scene;
				const hit = scene ? hitAt(scene, x, y) : null;
				setHover(null);
				if (hit?.kind === "call" || hit?.kind === "visit") store.go({ rid: hit.rid });
				else if (hit?.kind === "span") openSpan(hit.span, now.current.span);
				else if (hit?.kind === "state" && hit.row !== null) leadOn(hit.states, hit.row, hit.thread.tid, start);
				else if (hit?.kind === "state") {
					const half = Math.max(hit.states.bucket * NEARER, (now.current.span.to - now.current.span.from) / 16);
					store.go({ window: { kind: "range", from: Math.max(0, hit.t - half), to: hit.t + half } });
				} else if (hit?.kind === "lane" && hit.lane.group !== null) now.current.toggle(hit.lane.group);
				else if (hit?.kind === "sum" && hit.calls === 0) now.current.callAt(hit.thread.tid, hit.t);
				else if (hit?.kind === "sum" || hit?.kind === "layer") {
					// Nearer, until calls are drawn one by one.
					const { from, to } = now.current.span;
					const half = Math.max(hit.bucket * NEARER, Math.min(hit.bucket * 64, (to - from) / 8)) / 2;
					const middle = hit.t + hit.bucket / 2;
					store.go({ window: { kind: "range", from: Math.max(0, middle - half), to: middle + half } });
				} else if (store.get().rid !== null) store.go({ rid: null });
			},
			choose: (chosen) => store.go({ window: { kind: "range", ...chosen } }),
		});
	}, [start]);

	useShortcut(["Enter"], "Select the longest call in sight", "Timeline", () => {
		const rid = view.current.scene ? longestInSight(view.current.scene) : null;
		if (rid !== null) store.go({ rid });
	});
	useShortcut(["w", "s"], "Zoom in and out, around the pointer; held: smoothly", "Timeline", () => {});
	useShortcut(["a", "d"], "Earlier and later", "Timeline", () => {});
	useShortcut(["ArrowUp", "ArrowDown"], "Scroll the lanes", "Timeline", () => {});

	const threads = rows.reduce((a, row) => a + row.members.length, 0);
	return (
		<>
			<Progress on={busy} />
			<div
				className="board"
				aria-busy={busy}
				ref={holder}
				onScroll={(event) => {
					view.current.scroll = event.currentTarget.scrollTop;
					draw.current();
				}}
				role="img"
				aria-label={
					quiet
						? `${quiet}. States of ${threads} threads over time.`
						: `Calls of ${threads} threads over time. The table view has the same calls as text.`
				}
			>
				<div className="board-lanes" style={{ height: allLanes(newest) }}>
					<canvas ref={canvas} style={{ width: size.width, height: size.height }} />
				</div>
				{failed ? (
					<div className="board-failed">
						{archive
							? "This saved page does not have all of this part of the timeline."
							: "Parts could not be loaded; they are asked for again."}
					</div>
				) : null}
				{quiet ? (
					<div className="board-note" role="status">
						{quiet}. The strips show what the threads did meanwhile.
					</div>
				) : null}
				{below?.mode === "many" ? (
					<div className="board-note">Too many calls to look below each of them: zoom in to see their layers.</div>
				) : null}
				{hover ? (
					<Tip x={hover.x} y={hover.y}>
						<HitTip hit={hover.hit} failed={isFailure} />
					</Tip>
				) : null}
			</div>
			<NowEdge span={span} left={NAME_WIDTH} wide={size.width - NAME_WIDTH} named />
			{withStates ? <StatesKey states={states} rows={rows} span={span} /> : null}
			<button
				type="button"
				className="button plain board-png"
				title="Save this as a PNG picture"
				onClick={() => holder.current?.parentElement && savePng(holder.current.parentElement, "Timeline", "timeline")}
			>
				PNG
			</button>
		</>
	);
}

/** From a period to its request; without one, to its rows in SQL. */
function leadOn(states: States, row: number, tid: number, start: number): void {
	const rid = states.rid[row] ?? Number.NaN;
	if (Number.isFinite(rid)) {
		store.go({ rid });
		return;
	}
	if (!may("query")) return;
	const began = states.began[row] ?? Number.NaN;
	const sql = Number.isFinite(began)
		? `SELECT * FROM waits WHERE tid = ${tid} AND ts_ns = ${BigInt(start) + BigInt(began)}`
		: `SELECT * FROM thread_states WHERE tid = ${tid}`;
	store.go({ view: "sql", params: { sql } });
}

/** From a span to its calls; it must have begun in the window to be listed there. */
function openSpan(span: SpanBar, { from, to }: Span): void {
	const params = { name: nameKey(span), trace: span.trace, span: span.id };
	store.go({ view: "spans", params, ...(span.t < from || span.t > to ? { window: { kind: "all" } } : {}) });
}

/** All lanes below each other, with the ruler. */
function allLanes(state: Pick<State, "rows" | "sizes">): number {
	return state.rows.length * state.sizes.high + RULER_HEIGHT;
}

interface State {
	rows: readonly Lane[];
	by: ColorBy;
	span: Span;
	bounds: Span;
	revision: number;
	live: boolean;
	following: boolean;
	size: { width: number; height: number };
	theme: "dark" | "light";
	rid: number | null;
	sizes: LaneSizes;
	layers: readonly string[];
	below: Below | null;
	states: States | null;
	spans: ThreadSpans | null;
}

interface View {
	pointed: number | null;
	scroll: number;
	marked: Span | null;
	hovered: number | null;
	colors: Palette | null;
}

function makeScene(
	context: CanvasRenderingContext2D,
	state: State,
	view: View,
	tiles: TileCache<TileData>,
	pictures: Pictures,
	places: Blocks,
	start: number,
): Scene {
	const { width, height } = state.size;
	const { sizes } = state;
	const lanes = visibleLanes(state.rows.length, sizes.high, view.scroll, height - RULER_HEIGHT);
	const shown = state.rows.slice(lanes.first, lanes.last + 1).flatMap((row) => row.members);
	const blocks = [...new Set(shown.map((t) => places.of(t.tid)?.block ?? -1))].filter((b) => b >= 0);
	return {
		context,
		width,
		height,
		ratio: window.devicePixelRatio || 1,
		theme: state.theme,
		colors: view.colors ?? palette(),
		span: state.span,
		bounds: state.bounds,
		level: levelFor(state.span, width - NAME_WIDTH),
		start,
		rows: state.rows,
		by: state.by,
		scroll: view.scroll,
		sizes,
		lanes,
		blocks,
		places,
		tiles,
		pictures,
		selected: state.rid,
		hovered: view.hovered,
		marked: view.marked,
		layers: state.layers,
		below: state.below,
		states: state.states,
		spans: state.spans,
		pointed: view.pointed,
	};
}

function resize(canvas: HTMLCanvasElement, scene: Scene): void {
	const width = Math.round(scene.width * scene.ratio);
	const height = Math.round(scene.height * scene.ratio);
	if (canvas.width !== width) canvas.width = width;
	if (canvas.height !== height) canvas.height = height;
}

/** Whether something in sight is coarser than asked for, or not there. */
function lacksTiles(scene: Scene): boolean {
	const inside = (id: TileId) => {
		const { from, to } = tileSpan(id, scene.start);
		return to > scene.bounds.from && from < scene.bounds.to;
	};
	return scene.blocks.some((block) =>
		tilesIn(scene.span, scene.level, block, scene.start).some((id) => inside(id) && isMissing(scene.tiles, id)),
	);
}

/** Asks for the tiles of a scene, and for the coarsest ones, so that there is always something to show. */
function ask(scene: Scene, state: State, tiles: TileCache<TileData>): void {
	const whole = levelFor(scene.bounds, scene.width - NAME_WIDTH) + 1;
	const coarse = scene.blocks.flatMap((block) => tilesIn(scene.bounds, whole, block, scene.start));
	const needless = (id: TileId) => completeAt(tiles, id);
	const { seen, ahead } = wantedTiles(scene.span, scene.bounds, scene.level, scene.blocks, scene.start, needless);
	const missing = coarse.filter((id) => !tiles.has(id));
	// Tiles that end before the newest rows stay as they are.
	const revision = (id: TileId) => {
		const grows = state.live && tileSpan(id, scene.start).to >= state.bounds.to - SETTLED_NS;
		return scene.places.version(id.block) * VERSION + (grows ? state.revision : 0);
	};
	// While the newest is followed nothing beside it will be looked at next, and the recorded program needs the CPU.
	tiles.want(state.following ? [...seen, ...missing] : [...seen, ...missing, ...ahead, ...coarse], revision);
}

/** Calls are in the tables when they have ended, and within about this time. */
const SETTLED_NS = 3e9;
/** Above every number of a recording's states. */
const VERSION = 1e9;
