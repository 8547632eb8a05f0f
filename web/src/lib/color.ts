// Colors: the same thing has the same color in every view. Four saturated hues say what a call does to stored data, and
// red says that it failed; everything else has muted colors.

import { CALLS, type Purpose } from "../api/calls";

export type Theme = "dark" | "light";

/** What can have a color. */
export type Kind =
	| "span"
	| "syscall"
	| "purpose"
	| "class"
	| "layer"
	| "state"
	| "reason"
	| "thread"
	| "process"
	| "comm"
	| "file"
	| "device"
	| "series";

type Hsl = readonly [hue: number, saturation: number, lightness: number];

/** What calls do to stored data. These hues mean nothing else anywhere on the page. */
const PURPOSES: Readonly<Record<Purpose, Hsl>> = {
	read: [212, 82, 62],
	write: [38, 92, 53],
	sync: [318, 68, 64],
	metadata: [174, 52, 46],
	other: [215, 12, 58],
};

/** How shades of one hue differ: hue and lightness. Neighbors differ most. */
const SHADES: readonly (readonly [hue: number, lightness: number])[] = [
	[0, 0],
	[7, 13],
	[-7, -11],
	[11, 22],
	[-11, 6],
	[4, -18],
	[-4, 17],
	[14, -6],
];

/** Calls take shades of their purpose, in the order of the list. */
const SYSCALLS = new Map<string, Hsl>();
for (const [purpose, names] of Object.entries(CALLS)) {
	const [hue, saturation, lightness] = PURPOSES[purpose as Purpose];
	names.split(" ").forEach((name, i) => {
		const [turn, light] = SHADES[i % SHADES.length] ?? [0, 0];
		SYSCALLS.set(name, [hue + turn, saturation, Math.min(84, lightness + light)]);
	});
}

const CLASSES: Readonly<Record<string, Hsl>> = {
	data: [212, 60, 62],
	metadata: PURPOSES.metadata,
	directory: [181, 45, 60],
	xattr: [167, 40, 38],
	memory: PURPOSES.other,
	async: [228, 30, 64],
};

/** From the program down to the device: gray, greens in memory, violets at the device; waiting for the CPU is olive. */
const LAYERS: Readonly<Record<string, Hsl>> = {
	user: [215, 10, 46],
	syscall: [215, 16, 62],
	vfs: [155, 25, 52],
	fs: [142, 38, 48],
	pagecache: [98, 38, 52],
	block: [268, 58, 72],
	device: [252, 56, 60],
	sched: [54, 48, 48],
	irq: [24, 35, 58],
};

/** How a thread's time passes; in the block layer and the device it has their colors. */
const STATES: Readonly<Record<string, Hsl>> = {
	running: [215, 16, 62],
	runnable: [54, 48, 48],
	queue: [268, 58, 72],
	device: [252, 56, 60],
	completion: [284, 30, 50],
	waiting: [14, 30, 52],
	unknown: [212, 8, 50],
};

/** What a thread waits for: the colors of the layers where one of them is meant. */
const REASONS: Readonly<Record<string, Hsl>> = {
	cpu: [54, 48, 48],
	disk: [252, 56, 60],
	page_cache: [98, 38, 52],
	file_system: [142, 38, 48],
	page_fault: [128, 30, 57],
	swap: [118, 26, 42],
	async_io: [228, 30, 64],
	lock: [14, 45, 52],
	futex: [14, 30, 52],
	file_lock: [8, 36, 62],
	pipe: [196, 34, 52],
	socket: [204, 30, 60],
	poll: [220, 26, 60],
	timer: [228, 16, 54],
	child: [290, 22, 58],
};

/** The series that plots of every view share. */
const SERIES: Readonly<Record<string, Hsl>> = {
	calls: [215, 22, 62],
	read: PURPOSES.read,
	written: PURPOSES.write,
	// A page fault waits in memory's layer.
	faults: REASONS["page_fault"] ?? PURPOSES.other,
	errors: [2, 84, 62],
	answers: [215, 10, 54],
	p50: [215, 14, 60],
	p99: [50, 70, 62],
	max: [215, 16, 78],
	time: [215, 22, 62],
	rest: [212, 8, 50],
	steal: [340, 20, 50],
	before: [212, 14, 62],
	after: [184, 62, 48],
};

/** Page faults among calls. */
const FAULT = "page fault";

const FIXED: Partial<Record<Kind, (key: string) => Hsl | undefined>> = {
	syscall: (key) => SYSCALLS.get(key) ?? (key === FAULT ? SERIES["faults"] : PURPOSES.other),
	purpose: (key) => (key === FAULT ? SERIES["faults"] : PURPOSES[key as Purpose]),
	class: (key) => CLASSES[key],
	layer: (key) => LAYERS[key],
	state: (key) => STATES[key],
	reason: (key) => REASONS[key] ?? STATES["waiting"],
	series: (key) => SERIES[key],
};

/** Muted hues for things that have only a name, such as threads and files; neighbors differ in lightness as well. */
const PALETTE: readonly Hsl[] = [
	[232, 52, 68],
	[88, 44, 52],
	[284, 44, 66],
	[52, 48, 60],
	[196, 44, 60],
	[128, 38, 58],
	[256, 48, 76],
	[70, 44, 42],
	[300, 34, 54],
	[150, 40, 68],
	[220, 44, 50],
	[104, 40, 68],
	[270, 36, 52],
	[190, 48, 44],
];

/** FNV-1a: stable over sessions, pages and machines. */
export function hash(text: string): number {
	let h = 0x811c9dc5;
	for (let i = 0; i < text.length; i += 1) {
		h ^= text.charCodeAt(i);
		h = Math.imul(h, 0x01000193);
	}
	return h >>> 0;
}

const given = new Map<string, number>();
const taken = new Map<Kind, Set<number>>();

/** The place in the palette: by hash, and the next that is free while there are free ones, so that few things differ. */
function slot(kind: Kind, key: string): number {
	const name = `${kind}\0${key}`;
	const known = given.get(name);
	if (known !== undefined) return known;
	let used = taken.get(kind);
	if (!used) {
		used = new Set();
		taken.set(kind, used);
	}
	let place = hash(key) % PALETTE.length;
	for (let step = 0; step < PALETTE.length && used.has(place); step += 1) {
		place = (place + 1) % PALETTE.length;
	}
	used.add(place);
	given.set(name, place);
	return place;
}

/** Forgets what was given out. For tests. */
export function forgetColors(): void {
	given.clear();
	taken.clear();
}

function css([hue, saturation, lightness]: Hsl, theme: Theme): string {
	// The same hue on both grounds; on white it must be darker to be seen.
	const l = theme === "dark" ? lightness : Math.max(30, lightness - 9);
	return `hsl(${hue} ${saturation}% ${l}%)`;
}

/** The color of a thing: of a system call by its name, of a thread by its id or name, ... */
export function colorOf(kind: Kind, key: string | null, theme: Theme): string {
	// What is left: everything without a color of its own.
	if (key === null) return css(SERIES["rest"] ?? [212, 8, 50], theme);
	const fixed = FIXED[kind]?.(key);
	return css(fixed ?? PALETTE[slot(kind, key)] ?? [0, 0, 50], theme);
}

export const ERROR: Readonly<Record<Theme, string>> = { dark: "hsl(2 84% 64%)", light: "hsl(2 74% 46%)" };

type Rgb = readonly [number, number, number];

// Sequential: dark to bright on dark ground, bright to dark on light ground, so that "much" always stands out.
// Sampled from cividis-like ramps, which are even in lightness and safe for color-blind readers.
const RAMP: Readonly<Record<Theme, readonly Rgb[]>> = {
	dark: [
		[24, 42, 66],
		[31, 74, 110],
		[42, 111, 137],
		[74, 148, 143],
		[137, 183, 125],
		[212, 209, 104],
		[255, 236, 150],
	],
	light: [
		[226, 237, 244],
		[178, 213, 226],
		[120, 183, 203],
		[68, 147, 180],
		[43, 108, 155],
		[35, 69, 122],
		[26, 35, 82],
	],
};

/** A color for a share from 0 to 1 on the sequential ramp, as red, green and blue. */
export function rampRgb(share: number, theme: Theme): Rgb {
	const ramp = RAMP[theme];
	const at = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
	const i = Math.min(Math.floor(at), ramp.length - 2);
	const a = ramp[i] ?? [0, 0, 0];
	const b = ramp[i + 1] ?? a;
	const f = at - i;
	return [
		Math.round(a[0] + (b[0] - a[0]) * f),
		Math.round(a[1] + (b[1] - a[1]) * f),
		Math.round(a[2] + (b[2] - a[2]) * f),
	];
}

export function ramp(share: number, theme: Theme): string {
	const [r, g, b] = rampRgb(share, theme);
	return `rgb(${r} ${g} ${b})`;
}

/** Where a duration stands on a ramp from 1 µs to 1 s, logarithmically. */
export function durationShare(ns: number): number {
	return ns <= 1e3 ? 0 : Math.min(1, (Math.log10(ns) - 3) / 6);
}

/** What a call does to stored data. */
export function purposeOf(syscall: string): Purpose {
	return PURPOSE_OF.get(syscall) ?? "other";
}

const PURPOSE_OF = new Map<string, Purpose>(
	Object.entries(CALLS).flatMap(([purpose, names]) => names.split(" ").map((name) => [name, purpose as Purpose])),
);
