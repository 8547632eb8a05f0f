// Sums by key over a whole window, of tiles: what the pyramid answers at once, however many calls there are.

import type { Columns } from "../api/arrow";
import type { TileColumns } from "./buckets";
import { beginningOf, placeText } from "./directories";
import { isNumeric, type ListMember } from "./filters";
import { count } from "./format";
import { quantile } from "./scale";

/** The key of page faults on mapped files among calls and purposes, as the server has it. */
export const PAGE_FAULT = "page fault";

export interface Sum {
	/** Null for all other keys together, and for calls without one. */
	key: string | null;
	/** All other keys together. */
	rest: boolean;
	label: string | null;
	calls: number;
	errors: number;
	/** Errors that are no answers; null where that is not known. */
	failures: number | null;
	bytes: number;
	time: number;
	/** Page faults on mapped files, which are no calls, and the time that they took. */
	faults: number;
	inFaults: number;
	/** Time of calls and page faults: in the window, whenever they began, where that was asked for. */
	busy: number;
	max: number;
	/** Within a power of two; null without histograms. */
	p99: number | null;
	/** Some calls of this key may be in the rest. */
	atLeast: boolean;
	/** What is in the rest makes no difference to its time. */
	slight: boolean;
	/** Of a path: the file with its longest call, and how many files had it; null for other keys. */
	file?: { id: number | null; files: number };
	/** Of many paths that count together: the directory of nearly all. The label says how many. */
	directory?: string;
}

/** The rows of the address `top`. */
export function ranked(data: Columns): Sum[] {
	const keys = data.texts("key");
	const labels = data.texts("label");
	const value = (name: string, i: number) => data.f64(name)[i] || 0;
	const optional = (name: string, i: number) => (data.has(name) ? value(name, i) : 0);
	const paths = data.has("files");
	const directories = data.has("directory") ? data.texts("directory") : [];
	return keys.map((key, i) => {
		const sum: Sum = {
			key,
			rest: false,
			label: labels[i] ?? key,
			calls: value("calls", i),
			errors: value("errors", i),
			bytes: value("bytes", i),
			time: value("time_ns", i),
			max: value("max_ns", i),
			p99: value("p99_ns", i),
			faults: optional("faults", i),
			inFaults: optional("fault_ns", i),
			busy: value("time_ns", i) + optional("fault_ns", i),
			failures: data.has("failures") ? value("failures", i) : null,
			atLeast: false,
			slight: false,
		};
		const id = paths ? data.f64("file")[i] : undefined;
		const directory = directories[i];
		if (typeof directory === "string") {
			sum.directory = directory;
			sum.label = placeText({ directory, paths: value("paths", i), elsewhere: value("elsewhere", i) });
		} else if (paths) sum.file = { id: id === undefined || Number.isNaN(id) ? null : id, files: value("files", i) };
		return sum;
	});
}

/** What a sum is called: a path with the number of files that had it one after another. */
export function nameOf({ label, file }: Sum): string | null {
	return label !== null && file && file.files > 1 ? `${label} ×${count(file.files)}` : label;
}

/** What a click on a sum is about. With millions of calls files answer in the place of paths. */
export function thingOf(sum: Sum, member: ListMember): Thing {
	if (sum.directory !== undefined)
		return { member: "path", value: beginningOf(sum.directory), label: sum.label ?? sum.directory };
	const own = member === "full_path" && !sum.file ? "file" : member;
	const thing: Thing = {
		member: own,
		value: isNumeric(own) ? Number(sum.key) : (sum.key ?? ""),
		label: nameOf(sum) ?? sum.key ?? "",
	};
	if (sum.file?.id != null) thing.file = sum.file.id;
	return thing;
}

/** Part of a sum of time that makes no difference to who reads it. */
const UNSEEN = 0.005;

/** Whether a sum can be filtered by, and looked at. */
export function isThing(sum: Sum): boolean {
	// Page faults are no calls that a filter could select, and paths all over the place have no directory.
	if (sum.directory !== undefined) return sum.directory !== "/";
	return sum.key !== null && !(sum.key === PAGE_FAULT && sum.calls === 0);
}

/** Differs for all sums of a list. A directory may have calls of its own, too. */
export function rowKey({ key, directory }: Sum): string {
	if (directory !== undefined) return `in ${directory}`;
	return key === null ? "none" : `key ${key}`;
}

/** A file, directory, call, thread or layer that a click is about. */
export interface Thing {
	/** `path`: many paths that count together. The value is the directory of nearly all, as it is in a path. */
	member: ListMember | "path";
	/** As filters take it. */
	value: string | number;
	label: string;
	/** Of a path: a file that had it. */
	file?: number;
}

/** One sum a key, most time first, the rest last. */
export function sumsOf(tiles: TileColumns): Sum[] {
	const keys = tiles.texts("key");
	const labels = tiles.texts("label");
	const rest = tiles.has("rest") ? tiles.flags("rest") : [];
	const atLeast = tiles.has("at_least") ? tiles.flags("at_least") : [];
	const column = (name: string) => tiles.f64(name);
	const [calls, errors, bytes, time, max] = [
		column("calls"),
		column("errors"),
		column("bytes"),
		column("time_ns"),
		column("max_ns"),
	];
	const [faults, inFaults] = tiles.has("faults") ? [column("faults"), column("fault_ns")] : [];
	const busy = tiles.has("busy_ns") ? column("busy_ns") : null;
	const lists = tiles.has("latency") ? tiles.lists("latency") : null;
	const found = new Map<string, Sum & { histogram: number[] }>();
	for (let i = 0; i < tiles.rows; i += 1) {
		const key = keys[i] ?? null;
		const name = rest[i] ? "rest" : key === null ? "none" : `key ${key}`;
		let sum = found.get(name);
		if (!sum) {
			sum = {
				key: rest[i] ? null : key,
				rest: rest[i] === true,
				label: labels[i] ?? key,
				calls: 0,
				errors: 0,
				failures: null,
				bytes: 0,
				time: 0,
				faults: 0,
				inFaults: 0,
				busy: 0,
				max: 0,
				p99: null,
				atLeast: false,
				slight: false,
				histogram: [],
			};
			found.set(name, sum);
		}
		sum.calls += calls[i] || 0;
		sum.errors += errors[i] || 0;
		sum.bytes += bytes[i] || 0;
		sum.time += time[i] || 0;
		sum.faults += faults?.[i] || 0;
		sum.inFaults += inFaults?.[i] || 0;
		sum.busy += busy ? busy[i] || 0 : (time[i] || 0) + (inFaults?.[i] || 0);
		sum.max = Math.max(sum.max, max[i] || 0);
		sum.atLeast ||= atLeast[i] === true;
		const list = lists?.row(i);
		if (list) for (let b = 0; b < list.length; b += 1) sum.histogram[b] = (sum.histogram[b] ?? 0) + (list[b] ?? 0);
	}
	// What may be missing is in the rest: less than can be seen is not worth a mark.
	const inRest = found.get("rest")?.time ?? 0;
	return [...found.values()]
		.map(({ histogram, ...sum }) => ({
			...sum,
			slight: inRest <= sum.time * UNSEEN,
			p99: quantile(histogram, 0.99),
		}))
		.sort((a, b) => Number(a.rest) - Number(b.rest) || b.busy - a.busy);
}
