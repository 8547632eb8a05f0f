// Files as the list shows them: what had the same path together, in their directories, those of the system last.

export interface FileRow {
	file: number;
	/** Null when it is not known. */
	path: string | null;
	bytes: number;
	/** NaN where sums of many calls do not tell reads and writes apart. */
	read: number;
	written: number;
	calls: number;
	/** In calls and page faults. */
	time: number;
	faults: number;
	/** Of the file: regular, directory, ...; null when it is not known. */
	type: string | null;
}

/** One path: a file that was replaced or made again under its name has several ids. */
export interface Entry extends Omit<FileRow, "file"> {
	files: number[];
}

/** Several entries below a directory, or those of the system. */
export interface Folder {
	/** The directory; empty for the files of the system. */
	path: string;
	entries: Entry[];
}

export type Sort = "bytes" | "calls" | "time_ns";

/** Of so many files of a directory each has a line of its own. */
const FEW = 3;

const SYSTEM = /^\/(usr|lib|lib32|lib64|bin|sbin|etc|proc|sys|dev|run\/systemd)\//;

/** Files that every program of a kind loads: libraries, modules of interpreters, settings of the loader and of locales. */
const RUNTIME =
	/^\/(proc|sys|dev)\/|\.so(\.[\d.]+)?$|\/(__pycache__|site-packages|dist-packages|node_modules|lib\/python[\d.]+|locale|gconv)\/|\/ld\.so\.[a-z]+$/;

/** With this share of the time, a file or a directory of the system is the program's own work. */
const RELEVANT = 0.25;

export function amountOf(row: Pick<FileRow, "bytes" | "calls" | "time">, sort: Sort): number {
	return sort === "bytes" ? row.bytes : sort === "calls" ? row.calls : row.time;
}

/** Rows with the same path as one; a file without a path is one of its own. */
export function entriesOf(rows: readonly FileRow[]): Entry[] {
	const made = new Map<string, Entry>();
	for (const { file, ...row } of rows) {
		const key = row.path ?? `file ${file}`;
		const known = made.get(key);
		if (!known) {
			made.set(key, { ...row, files: [file] });
			continue;
		}
		known.files.push(file);
		for (const name of ["bytes", "read", "written", "calls", "time", "faults"] as const) known[name] += row[name];
	}
	return [...made.values()];
}

export function directoryOf(path: string): string {
	const at = path.lastIndexOf("/");
	return at <= 0 ? "/" : path.slice(0, at);
}

/** `/usr/share/doc` of a file below it: fine enough to separate data from libraries. */
function regionOf(path: string): string {
	return path.split("/").slice(0, -1).slice(0, 4).join("/");
}

/** Files of the system and of runtimes, which are folded, and directories of the system that the program works on. */
function systemOf(entries: readonly Entry[]): { folded: Set<Entry>; regions: Set<string> } {
	const total = entries.reduce((sum, entry) => sum + entry.time, 0);
	const relevant = (time: number) => total > 0 && time >= total * RELEVANT;
	const times = new Map<string, number>();
	for (const { path, time } of entries) {
		if (path === null || RUNTIME.test(path) || !SYSTEM.test(path)) continue;
		const region = regionOf(path);
		times.set(region, (times.get(region) ?? 0) + time);
	}
	const regions = new Set([...times].flatMap(([region, time]) => (relevant(time) ? [region] : [])));
	const folded = entries.filter(
		({ path, time }) =>
			path !== null && !relevant(time) && (RUNTIME.test(path) || (SYSTEM.test(path) && !regions.has(regionOf(path)))),
	);
	return { folded: new Set(folded), regions };
}

/** Entries and folders, the one with the most first. A search shows every file it finds. */
export function grouped(rows: readonly FileRow[], sort: Sort, searching: boolean): (Entry | Folder)[] {
	const entries = entriesOf(rows).sort((a, b) => amountOf(b, sort) - amountOf(a, sort));
	if (searching) return entries;
	const { folded, regions } = systemOf(entries);
	const folders = new Map<string, Entry[]>();
	const items: (Entry | Folder)[] = [];
	for (const entry of entries) {
		if (folded.has(entry)) continue;
		if (entry.path === null) {
			items.push(entry);
			continue;
		}
		const region = regionOf(entry.path);
		const folder = SYSTEM.test(entry.path) && regions.has(region) ? region : directoryOf(entry.path);
		const list = folders.get(folder);
		if (list) list.push(entry);
		else folders.set(folder, [entry]);
	}
	for (const [path, list] of folders) {
		if (list.length <= FEW) items.push(...list);
		else items.push({ path, entries: list });
	}
	const most = (item: Entry | Folder) => sumOf(item, sort);
	items.sort((a, b) => most(b) - most(a));
	if (folded.size > FEW) items.push({ path: "", entries: [...folded] });
	else items.push(...folded);
	return items;
}

/** What has no offsets: entries of a directory are no bytes of it, and streams have no places. */
const WITHOUT_OFFSETS = new Set(["directory", "fifo", "socket", "char", "anonymous"]);

/** Whether reads, writes or page faults at places in the file can be drawn. */
function hasAccesses({ bytes, read, written, faults, type }: Entry): boolean {
	if (type !== null && WITHOUT_OFFSETS.has(type)) return false;
	return faults > 0 || (Number.isFinite(read) ? read + written : bytes) > 0;
}

/**
 * The entry that is shown when none is chosen: of those with something to draw the one with the most, of the program's own
 * if there is any. A saved page has the offsets of `saved` only.
 */
export function firstOf(
	items: readonly (Entry | Folder)[],
	sort: Sort,
	saved: ReadonlySet<string> | null = null,
): Entry | undefined {
	const first = (among: readonly (Entry | Folder)[]) =>
		among
			.flatMap((item) => (isFolder(item) ? item.entries : [item]))
			.filter((entry) => hasAccesses(entry) && (saved?.has(entry.files.join(",")) ?? true))
			.sort((a, b) => amountOf(b, sort) - amountOf(a, sort))[0];
	return first(items.filter((item) => !isFolder(item) || item.path !== "")) ?? first(items);
}

/** The ends of paths that differ: each the name, with as many directories before it as it takes to tell it apart. */
export function distinctNames(paths: readonly string[]): Map<string, string> {
	const names = new Map<string, string>();
	let open = [...new Set(paths)];
	for (let parts = 1; open.length > 0; parts += 1) {
		const ends = new Map<string, string[]>();
		for (const path of open) {
			const end = path.split("/").slice(-parts).join("/");
			ends.set(end, [...(ends.get(end) ?? []), path]);
		}
		open = [];
		for (const [end, same] of ends) {
			const only = same[0];
			// A path that is used up cannot become longer.
			if (same.length === 1 && only !== undefined) names.set(only, end);
			else {
				for (const path of same) {
					if (path === end) names.set(path, end);
					else open.push(path);
				}
			}
		}
	}
	return names;
}

export function isFolder(item: Entry | Folder): item is Folder {
	return "entries" in item;
}

export function sumOf(item: Entry | Folder, sort: Sort): number {
	return isFolder(item) ? item.entries.reduce((a, entry) => a + amountOf(entry, sort), 0) : amountOf(item, sort);
}

/** Ids in an address: `3,7`. */
export function parseFiles(text: string): number[] {
	const ids = text.split(",").filter((part) => /^\d{1,15}$/.test(part));
	return [...new Set(ids.map(Number))];
}
