// Which sessions the field above the list shows.

import type { SessionSummary } from "../../api/types";

type Named = Pick<SessionSummary, "id" | "command" | "target" | "labels">;

/** The sessions of a command that is written in full, otherwise those that match all words. */
export function matching<S extends Named>(sessions: readonly S[], wanted: string): S[] {
	const same = sessions.filter((session) => (session.command ?? session.target) === wanted);
	if (same.length > 0) return same;
	const words = wordsOf(wanted.toLowerCase());
	return sessions.filter((session) => words.every((word) => matches(session, word)));
}

/** Words, of which a part in double quotes may contain spaces: `note="second run"`. */
function wordsOf(text: string): string[] {
	return (text.match(/(?:"[^"]*"?|[^\s"])+/g) ?? []).map((word) => word.replaceAll('"', ""));
}

/**
 * A word is a part of the name, of the command, or of a label. `job=17` is the whole label: it does not match `job=170`, but
 * `job=17*` does. `job=` is any session with label `job`.
 */
function matches(session: Named, word: string): boolean {
	const text = `${session.id} ${session.command ?? session.target}`.toLowerCase();
	if (text.includes(word)) return true;
	const labels = labelsOf(session).map((label) => label.toLowerCase());
	const [key] = word.split("=", 1);
	if (key === word || key === "") return labels.some((label) => label.includes(word));
	if (word.endsWith("*")) return labels.some((label) => label.startsWith(word.slice(0, -1)));
	if (word.endsWith("=")) return labels.some((label) => label.startsWith(word));
	return labels.includes(word);
}

/** Labels as they are given: `KEY=VALUE`. */
export function labelsOf(session: Pick<SessionSummary, "labels">): string[] {
	return Object.entries(session.labels).map(([key, value]) => `${key}=${value ?? ""}`);
}
