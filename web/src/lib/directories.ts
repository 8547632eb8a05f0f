// Where many paths are that count together, as the server finds it (crates/query/src/together.rs). Frames of a flame graph are
// put together here, as a comparison has those of two sessions.

import { exact } from "./format";

/** What the server says of paths that count together. */
export interface Rule {
	/** Share of the whole below which a path has little. */
	little: number;
	/** So many of them count together. */
	many: number;
	/** Share of them, and of their sum, that a directory contains to stand for all. */
	nearlyAll: number;
}

export interface Place {
	directory: string;
	/** All paths, and how many of them are not in the directory. */
	paths: number;
	elsewhere: number;
}

/** The deepest directory that contains at least a share of the paths, and of their sum. */
export function placeOf(paths: readonly (readonly [path: string, value: number])[], share: number): Place {
	const whole = paths.reduce((all, [, value]) => all + value, 0);
	let inside = paths.map(([path, value]) => ({ names: path.split("/").slice(1, -1), value }));
	const names: string[] = [];
	for (;;) {
		const below = new Map<string, typeof inside>();
		for (const path of inside) {
			const name = path.names[names.length];
			if (name === undefined) continue;
			const same = below.get(name);
			if (same) same.push(path);
			else below.set(name, [path]);
		}
		const next = [...below].find(
			([, of]) => of.length >= share * paths.length && of.reduce((all, { value }) => all + value, 0) >= share * whole,
		);
		if (!next) break;
		names.push(next[0]);
		inside = next[1];
	}
	return { directory: `/${names.join("/")}`, paths: paths.length, elsewhere: paths.length - inside.length };
}

/** In words, those of the report. */
export function placeText({ directory, paths, elsewhere }: Place): string {
	if (directory === "/") return `${exact(paths)} paths in many directories`;
	const but = elsewhere > 0 ? `, all but ${exact(elsewhere)}` : "";
	return `${exact(paths)} paths${but} in ${directory}`;
}

/** The beginning of all paths in a directory. */
export function beginningOf(directory: string): string {
	return directory.endsWith("/") ? directory : `${directory}/`;
}
