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
	time: number;
	faults: number;
}

/** One path: a file that was replaced or made again under its name has several ids. */
export interface Entry extends Omit<FileRow, "file"> {
	files: number[];
}

/** Several entries of a directory, or those of the system. */
export interface Folder {
	/** The directory; empty for the files of the system. */
	path: string;
	entries: Entry[];
}

export type Sort = "bytes" | "calls" | "time_ns";

/** Of so many files of a directory each has a line of its own. */
const FEW = 3;

const SYSTEM = /^\/(usr|lib|lib32|lib64|bin|sbin|etc|proc|sys|dev|run\/systemd)\//;

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

/** Entries and folders, the one with the most first. A search shows every file it finds. */
export function grouped(rows: readonly FileRow[], sort: Sort, searching: boolean): (Entry | Folder)[] {
	const entries = entriesOf(rows).sort((a, b) => amountOf(b, sort) - amountOf(a, sort));
	if (searching) return entries;
	const system = entries.filter((entry) => entry.path !== null && SYSTEM.test(entry.path));
	const folders = new Map<string, Entry[]>();
	const items: (Entry | Folder)[] = [];
	for (const entry of entries) {
		if (entry.path === null) items.push(entry);
		else if (!SYSTEM.test(entry.path)) {
			const folder = directoryOf(entry.path);
			const list = folders.get(folder);
			if (list) list.push(entry);
			else folders.set(folder, [entry]);
		}
	}
	for (const [path, list] of folders) {
		if (list.length <= FEW) items.push(...list);
		else items.push({ path, entries: list });
	}
	const most = (item: Entry | Folder) => sumOf(item, sort);
	items.sort((a, b) => most(b) - most(a));
	if (system.length > FEW) items.push({ path: "", entries: system });
	else items.push(...system);
	return items;
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
