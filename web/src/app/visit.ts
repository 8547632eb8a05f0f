// Looks at what links lead to, so that a saved page has the answers that it needs when they are followed.

import { turns } from "../state/quiet";
import { archive } from "../state/server";
import { store } from "../state/store";
import { formatState, type PageState, parseState } from "../state/url";

/** Links of explanations and of findings. */
const LINKS = "a.story-link[href], .finding-links a[href]";
/** More links than these are not followed. */
export const MOST = 24;
const LOOK_MS = 50;
/** Loading has to be over for so many looks: one answer leads to the next question. */
const QUIET = 2;
/** What takes longer is left out. */
const LONGEST_MS = 10_000;

/** The states that links lead to, each once, without the ones that are `known`. */
export function statesOf(searches: readonly string[], session: string | null, known: ReadonlySet<string>): PageState[] {
	const found = new Map<string, PageState>();
	for (const search of searches) {
		const state = parseState(search);
		const address = formatState(state);
		if (state.session === session && !known.has(address)) found.set(address, state);
	}
	return [...found.values()].slice(0, MOST);
}

function linked(): string[] {
	const links = document.querySelectorAll<HTMLAnchorElement>(`#main :is(${LINKS})`);
	return [...links].map((link) => new URL(link.href).search);
}

/** Shows what the links of the view, and those of the overview if `overview`, lead to, and returns to where it was. */
export async function visitLinks(overview: boolean, say: (done: number, all: number) => void): Promise<void> {
	if (archive) return;
	const start = store.get();
	const top = document.getElementById("main")?.scrollTop ?? 0;
	const searches = linked();
	try {
		if (overview && start.view !== "overview") {
			store.show({ ...start, view: "overview", rid: null, params: {} });
			await settled();
			searches.push(...linked());
		}
		const states = statesOf(searches, start.session, new Set([formatState(start)]));
		for (const [i, state] of states.entries()) {
			say(i + 1, states.length);
			store.show(state);
			await settled();
		}
	} finally {
		store.show(start);
		await settled();
		document.getElementById("main")?.scrollTo({ top });
	}
}

async function settled(): Promise<void> {
	const until = performance.now() + LONGEST_MS;
	for (let quiet = 0; quiet < QUIET && performance.now() < until; ) {
		await new Promise((done) => setTimeout(done, LOOK_MS));
		const busy = turns.unanswered > 0 || document.querySelector('[aria-busy="true"], .progress.on') !== null;
		quiet = busy ? 0 : quiet + 1;
	}
}
