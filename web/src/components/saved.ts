// What a saved page has: nothing leads to what it has not.

import type { Archive } from "../api/archive";
import { archive, savedFiles } from "../state/server";

/** The part of a page's state that says where it leads. */
export interface Place {
	view?: string;
	rid?: number | null;
	params?: Readonly<Record<string, string | null>>;
}

/** Whether a page saved with these views, answers and files has a place. */
export function hasPlace(
	{ views, answers }: Pick<Archive, "views" | "answers">,
	files: ReadonlySet<string>,
	{ view, rid, params }: Place,
): boolean {
	if (view !== undefined && !views.includes(view)) return false;
	if (rid != null && !answers.some(({ path }) => path.endsWith(`/requests/${rid}`))) return false;
	const file = view === "file" ? params?.["file"] : null;
	return file == null || files.has(file);
}

/** Whether this page has a place: one with a server has all. */
export function isThere(place: Place): boolean {
	return archive === null || hasPlace(archive, savedFiles ?? new Set(), place);
}
