// A page that was saved with answers in it: the file answers the page's questions itself, without a server.

/** What a saved page has besides the page: `Archive` of the server (crates/server/src/share.rs). */
export interface Archive {
	/** The state that it opens with, as in an address. */
	start: string;
	/** Views that were looked at. */
	views: string[];
	answers: Kept[];
	/** Questions that found no room. */
	missing: number;
}

interface Kept {
	path: string;
	body?: string;
	kind: string;
	/** Compressed (gzip), in base64. */
	data: string;
}

/** What only says how finely an answer is to be drawn: a coarser or finer one will do. */
const FINENESS = ["pixels", "width", "height"];

/** Equal for questions that one answer is for. */
export function questionKey(path: string, body?: string | null): string {
	const [base = "", query = ""] = path.split("?");
	const params = new URLSearchParams(query);
	for (const name of FINENESS) params.delete(name);
	params.sort();
	return `${base}?${params} ${body ?? ""}`;
}

/** The saved page's answers; null on a page that has a server. */
export function readArchive(): Archive | null {
	const element = typeof document === "undefined" ? null : document.getElementById("answers");
	if (!element?.textContent) return null;
	try {
		return JSON.parse(element.textContent) as Archive;
	} catch {
		return null;
	}
}

/** Takes the place of `fetch`: answers from the archive. */
export function archiveSender(archive: Archive): typeof fetch {
	const known = new Map(archive.answers.map((kept) => [questionKey(kept.path, kept.body), kept]));
	return async (input, init) => {
		const path = String(input).replace(/^\/api/, "");
		// Nothing is added to what was saved.
		if (path.endsWith("/live")) return new Response(new ReadableStream());
		const body = typeof init?.body === "string" ? init.body : null;
		const kept =
			known.get(questionKey(path, body)) ?? widerTile(path, archive.answers) ?? otherOrder(path, archive.answers);
		if (!kept) return new Response(JSON.stringify(NOT_SAVED), { status: 404 });
		const packed = new Blob([bytesOf(kept.data)]).stream().pipeThrough(new DecompressionStream("gzip"));
		return new Response(packed, { headers: { "Content-Type": kept.kind } });
	};
}

const NOT_SAVED = {
	error: {
		what: "this saved page does not have that",
		subject: "",
		next: "it has the windows and calls that were open when it was saved; go back, or open the session with fathom ui",
	},
};

/** A tile of the timeline of another width, or of other threads: one that is wider or has more has the same calls. */
function widerTile(path: string, answers: readonly Kept[]): Kept | undefined {
	const wanted = tileOf(path);
	if (!wanted) return undefined;
	let best: { kept: Kept; width: number } | undefined;
	for (const kept of answers) {
		const tile = tileOf(kept.path);
		if (!tile || tile.rest !== wanted.rest || tile.from > wanted.from || tile.to < wanted.to) continue;
		if (tile.lanes && (!wanted.lanes || wanted.lanes.some((lane) => !tile.lanes?.includes(lane)))) continue;
		if (!best || tile.to - tile.from < best.width) best = { kept, width: tile.to - tile.from };
	}
	return best?.kept;
}

/** A list that is put into its order where it is shown may be kept in another one. */
const ORDERED_BY_READER = "300";

/** The list of files in another order: the page sorts it. */
function otherOrder(path: string, answers: readonly Kept[]): Kept | undefined {
	const wanted = listOf(path);
	return wanted === null ? undefined : answers.find((kept) => listOf(kept.path) === wanted);
}

/** A list without its order; null for other questions. */
function listOf(path: string): string | null {
	const [base = "", query = ""] = path.split("?");
	const params = new URLSearchParams(query);
	if (!base.endsWith("/top") || params.get("limit") !== ORDERED_BY_READER) return null;
	params.delete("sort");
	return questionKey(`${base}?${params}`);
}

/** The files of which a saved page has the accesses, as they stand in questions. */
export function keptFiles(archive: Archive): ReadonlySet<string> {
	const files = archive.answers.flatMap(({ path }) => {
		const [base = "", query = ""] = path.split("?");
		const file = base.endsWith("/offsets") ? new URLSearchParams(query).get("file") : null;
		return file === null ? [] : [file];
	});
	return new Set(files);
}

interface Tile {
	from: number;
	to: number;
	/** Null for all threads. */
	lanes: string[] | null;
	rest: string;
}

function tileOf(path: string): Tile | null {
	const [base = "", query = ""] = path.split("?");
	if (!base.endsWith("/timeline")) return null;
	const params = new URLSearchParams(query);
	const from = Number(params.get("from") ?? Number.NEGATIVE_INFINITY);
	const to = Number(params.get("to") ?? Number.POSITIVE_INFINITY);
	const lanes = params.get("lanes")?.split(",") ?? null;
	for (const name of ["from", "to", "lanes"]) params.delete(name);
	return { from, to, lanes, rest: questionKey(`${base}?${params}`) };
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
	return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}
