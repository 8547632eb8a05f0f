// A flame graph: time by several levels, in any order of these.

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
	name: string;
	/** Null for the root. */
	level: Level | null;
	/** Nanoseconds, here and below. */
	ns: number;
	/** The same on the other side of a comparison. */
	before: number;
	/** Most time first. */
	children: FlameNode[];
	parent: FlameNode | null;
	depth: number;
}

interface Building extends FlameNode {
	byName: Map<string, Building>;
}

function node(name: string, level: Level | null, parent: Building | null): Building {
	return {
		name,
		level,
		ns: 0,
		before: 0,
		children: [],
		parent,
		depth: parent ? parent.depth + 1 : 0,
		byName: new Map(),
	};
}

/** The tree of rows, and of those of another session to compare with. */
export function flameOf(rows: FlameRows, order: readonly Level[], other?: FlameRows): FlameNode {
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
	const sort = (of: FlameNode) => {
		of.children.sort((a, b) => Math.max(b.ns, b.before) - Math.max(a.ns, a.before) || (a.name < b.name ? -1 : 1));
		for (const child of of.children) sort(child);
	};
	sort(root);
	return root;
}

/** The names from below the root down to a node. */
export function pathOf(of: FlameNode): string[] {
	const names: string[] = [];
	for (let at: FlameNode | null = of; at?.parent; at = at.parent) names.unshift(at.name);
	return names;
}

/** The node that names lead to, as far as there is one. */
export function nodeAt(root: FlameNode, names: readonly string[]): FlameNode {
	let at = root;
	for (const name of names) {
		const next = at.children.find((child) => child.name === name);
		if (!next) return at;
		at = next;
	}
	return at;
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
