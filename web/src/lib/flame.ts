// A flame graph: time by several levels, in any order. Many files with little time are one frame of their directory.

import { beginningOf, placeOf, placeText, type Rule } from "./directories";

export const LEVELS = ["process", "file", "syscall", "layer", "ahead"] as const;
export type Level = (typeof LEVELS)[number];

/** What calls without one are called. */
export const NONE: Readonly<Record<Level, string>> = {
	process: "unknown process",
	file: "no file",
	syscall: "unknown call",
	layer: "no layer",
	ahead: "nothing ahead",
};

/** Time by level, a row each: as the server sends it. */
export interface FlameRows {
	length: number;
	levels: Readonly<Record<Level, readonly (string | null)[]>>;
	ns: Float64Array;
}

export interface FlameNode {
	/** Among its siblings; a directory has a slash at its end. */
	name: string;
	/** The text on the frame. */
	label: string;
	/** Null for the root. */
	level: Level | "directory" | null;
	/** Nanoseconds, here and below. */
	ns: number;
	/** The same on the other side of a comparison. */
	before: number;
	/** Most time first. */
	children: FlameNode[];
	parent: FlameNode | null;
	depth: number;
	/** Of a directory, what is in it; `children` are what its files contain. */
	files?: FlameNode[];
}

interface Building extends FlameNode {
	byName: Map<string, Building>;
}

function node(name: string, level: FlameNode["level"], parent: FlameNode | null): Building {
	return {
		name,
		label: name,
		level,
		ns: 0,
		before: 0,
		children: [],
		parent,
		depth: parent ? parent.depth + 1 : 0,
		byName: new Map(),
	};
}

/** The tree of rows, and of those of another session to compare with. With a rule files are put together. */
export function flameOf(rows: FlameRows, order: readonly Level[], other?: FlameRows, rule?: Rule): FlameNode {
	const root = node("all calls", null, null);
	const add = (from: FlameRows, column: "ns" | "before") => {
		for (let i = 0; i < from.length; i += 1) {
			const ns = from.ns[i] ?? 0;
			root[column] += ns;
			let at = root;
			for (const level of order) {
				const value = from.levels[level][i] ?? null;
				// What nothing is known of ends here: a frame for it would say nothing.
				if (value === null && level === "ahead") break;
				const name = value ?? NONE[level];
				let child = at.byName.get(name);
				if (!child) {
					child = node(name, level, at);
					at.byName.set(name, child);
					at.children.push(child);
				}
				child[column] += ns;
				at = child;
			}
		}
	};
	add(rows, "ns");
	if (other) add(other, "before");
	if (rule) together(root, rule, Math.max(root.ns, root.before));
	const sort = (of: FlameNode) => {
		of.children.sort(bySize);
		for (const child of of.children) sort(child);
	};
	sort(root);
	return root;
}

function sizeOf(of: FlameNode): number {
	return Math.max(of.ns, of.before);
}

function bySize(a: FlameNode, b: FlameNode): number {
	return sizeOf(b) - sizeOf(a) || (a.name < b.name ? -1 : 1);
}

/** Puts files below a node together that have little of the whole, if there are many. */
function together(of: FlameNode, rule: Rule, whole: number): void {
	const little = of.children.filter(
		(child) => child.level === "file" && child.name.startsWith("/") && sizeOf(child) < rule.little * whole,
	);
	if (little.length >= rule.many) {
		const gone = new Set(little);
		of.children = of.children.filter((child) => !gone.has(child));
		of.children.push(directoryOf(little, of, rule.nearlyAll));
	}
	for (const child of of.children) if (child.level !== "directory") together(child, rule, whole);
}

/** A frame for files: their sums, by what they contain. */
function directoryOf(files: FlameNode[], parent: FlameNode, share: number): FlameNode {
	const place = placeOf(
		files.map((file) => [file.name, sizeOf(file)]),
		share,
	);
	const made: FlameNode = { ...node(beginningOf(place.directory), "directory", parent), files };
	made.label = placeText(place);
	addTo(made, files);
	return made;
}

/** Adds nodes to one that stands for them all. */
function addTo(sum: FlameNode, nodes: readonly FlameNode[]): void {
	const below = new Map<string, FlameNode[]>();
	for (const of of nodes) {
		sum.ns += of.ns;
		sum.before += of.before;
		for (const child of of.children) {
			const same = below.get(child.name);
			if (same) same.push(child);
			else below.set(child.name, [child]);
		}
	}
	for (const same of below.values()) {
		const [first] = same;
		if (!first) continue;
		const child = node(first.name, first.level, sum);
		addTo(child, same);
		sum.children.push(child);
	}
	sum.children.sort(bySize);
}

/** A directory with a level more: what is in it, and its directories as frames that can be opened in turn. */
export function opened(directory: FlameNode): FlameNode {
	const { files } = directory;
	if (!files) return directory;
	const here = directory.name;
	const entries = new Map<string, FlameNode[]>();
	for (const file of files) {
		// What is elsewhere is shown from the root on.
		const from = file.name.startsWith(here) ? here.length : 1;
		const slash = file.name.indexOf("/", from);
		const entry = slash < 0 ? file.name : file.name.slice(0, slash + 1);
		const same = entries.get(entry);
		if (same) same.push(file);
		else entries.set(entry, [file]);
	}
	const whole: FlameNode = { ...directory, children: [] };
	for (const same of entries.values()) {
		const [only] = same;
		whole.children.push(only && same.length === 1 ? moved(only, whole) : directoryOf(same, whole, 1));
	}
	whole.children.sort(bySize);
	return whole;
}

/** A copy below another node. */
function moved(of: FlameNode, parent: FlameNode): FlameNode {
	const copy: FlameNode = { ...of, parent, depth: parent.depth + 1 };
	copy.children = of.children.map((child) => moved(child, copy));
	return copy;
}

/** The nodes from below the root down to a node. */
export function nodesTo(of: FlameNode): FlameNode[] {
	const nodes: FlameNode[] = [];
	for (let at: FlameNode | null = of; at?.parent; at = at.parent) nodes.unshift(at);
	return nodes;
}

/** Their names. */
export function pathOf(of: FlameNode): string[] {
	return nodesTo(of).map((node) => node.name);
}

/** The node that names lead to, as far as there is one. Directories are opened on the way where that leads on, and at the end. */
export function nodeAt(root: FlameNode, names: readonly string[]): FlameNode {
	let at = root;
	for (const name of names) {
		const named = (child: FlameNode) => child.name === name;
		const next = at.children.find(named) ?? opened(at).children.find(named);
		if (!next) break;
		at = next;
	}
	return opened(at);
}

export interface Placed {
	node: FlameNode;
	/** How many of its children this stands for, which are too narrow to be drawn; 0 for the node itself. */
	more: number;
	/** Shares of the whole width. */
	from: number;
	to: number;
}

/**
 * Where frames lie when `focus` fills the width: its ancestors above it, what is below it in proportion. Frames that
 * are narrower than `least` of the width are one for all of a parent.
 */
export function placedOf(focus: FlameNode, least: number, size: (of: FlameNode) => number = (of) => of.ns): Placed[] {
	const placed: Placed[] = [];
	for (let at: FlameNode | null = focus; at; at = at.parent) placed.unshift({ node: at, more: 0, from: 0, to: 1 });
	const whole = size(focus);
	if (!(whole > 0)) return placed;
	const below = (of: FlameNode, from: number) => {
		let at = from;
		let more = 0;
		let rest = 0;
		// The narrow ones come last, as children are in the order of their time.
		for (const child of of.children) {
			const wide = size(child) / whole;
			if (wide < least) {
				more += 1;
				rest += wide;
				continue;
			}
			placed.push({ node: child, more: 0, from: at, to: at + wide });
			below(child, at);
			at += wide;
		}
		if (rest >= least) placed.push({ node: of, more, from: at, to: at + rest });
	};
	below(focus, 0);
	return placed;
}

/** From -1 (only before) to 1 (only now): how the share of a node's time has changed. */
export function changeOf(of: FlameNode): number {
	const most = Math.max(of.ns, of.before);
	return most > 0 ? (of.ns - of.before) / most : 0;
}
