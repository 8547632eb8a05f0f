// Colors: the same thing has the same color in every view. The hues follow Okabe and Ito, so that they stay apart
// for color-blind readers; red-orange is kept for errors alone.

export type Theme = "dark" | "light";

/** What can have a color. */
export type Kind = "syscall" | "class" | "layer" | "thread" | "process" | "comm" | "file" | "device" | "series";

type Hsl = readonly [hue: number, saturation: number, lightness: number];

const SKY: Hsl = [202, 77, 60];
const ORANGE: Hsl = [41, 100, 45];
const GREEN: Hsl = [160, 60, 42];
const PINK: Hsl = [327, 45, 64];
const BLUE: Hsl = [222, 64, 62];
const OLIVE: Hsl = [62, 55, 45];
const VIOLET: Hsl = [265, 48, 66];
const TEAL: Hsl = [184, 48, 50];
const BROWN: Hsl = [25, 38, 54];
const GRAY: Hsl = [212, 22, 64];
const MOSS: Hsl = [97, 37, 53];
const ROSE: Hsl = [348, 62, 71];

/** Hues for things without one of their own; neighbors differ in lightness as well. */
const PALETTE: readonly Hsl[] = [
	SKY,
	ORANGE,
	GREEN,
	PINK,
	BLUE,
	OLIVE,
	VIOLET,
	TEAL,
	BROWN,
	GRAY,
	MOSS,
	ROSE,
	[240, 30, 74],
	[50, 70, 66],
];

/** Places in it that have a meaning among calls: reading, writing, opening, flushing. */
const MEANT: ReadonlySet<number> = new Set([SKY, ORANGE, GREEN, PINK].map((hue) => PALETTE.indexOf(hue)));

const READ = 202;
const WRITE = 41;
const SYNC = 327;
const OPEN = 160;
const STAT = 184;
const NAME = 265;

/** Calls: reading is blue, writing orange, flushing pink, opening green, asking teal, changing names violet. */
const SYSCALLS: Readonly<Record<string, Hsl>> = {
	read: [READ, 77, 60],
	pread64: [READ + 8, 70, 50],
	readv: [READ - 6, 70, 72],
	preadv: [READ + 14, 60, 68],
	preadv2: [READ + 18, 50, 58],
	IORING_OP_READ: [READ + 4, 85, 66],
	IORING_OP_READV: [READ + 10, 85, 72],
	write: [WRITE, 100, 45],
	pwrite64: [WRITE - 8, 88, 52],
	writev: [WRITE + 6, 85, 62],
	pwritev: [WRITE - 4, 65, 62],
	pwritev2: [WRITE - 10, 60, 66],
	IORING_OP_WRITE: [WRITE + 2, 95, 56],
	IORING_OP_WRITEV: [WRITE + 8, 95, 68],
	fsync: [SYNC, 45, 64],
	fdatasync: [SYNC - 14, 45, 56],
	sync_file_range: [SYNC + 10, 50, 72],
	sync: [SYNC + 16, 40, 58],
	syncfs: [SYNC + 20, 35, 66],
	msync: [SYNC - 22, 40, 66],
	open: [OPEN - 12, 50, 50],
	openat: [OPEN, 60, 42],
	openat2: [OPEN + 8, 50, 55],
	creat: [OPEN - 20, 45, 58],
	close: GRAY,
	stat: [STAT + 6, 48, 60],
	fstat: [STAT, 48, 50],
	lstat: [STAT - 6, 40, 62],
	newfstatat: [STAT + 4, 55, 44],
	statx: [STAT - 4, 60, 58],
	access: [STAT + 12, 35, 66],
	faccessat2: [STAT + 10, 30, 58],
	readlink: [STAT - 8, 32, 70],
	readlinkat: [STAT - 10, 32, 64],
	statfs: [STAT + 8, 28, 48],
	lseek: [212, 12, 54],
	unlink: [NAME, 48, 66],
	unlinkat: [NAME + 8, 45, 60],
	rename: [NAME - 10, 50, 72],
	renameat: [NAME - 14, 45, 64],
	renameat2: [NAME - 18, 40, 70],
	mkdir: [NAME + 16, 35, 70],
	getdents64: BROWN,
	mmap: MOSS,
	ftruncate: OLIVE,
	fallocate: [62, 45, 56],
};

const CLASSES: Readonly<Record<string, Hsl>> = {
	data: BLUE,
	metadata: [160, 55, 45],
	directory: VIOLET,
	xattr: BROWN,
	memory: MOSS,
	async: [41, 90, 50],
};

const LAYERS: Readonly<Record<string, Hsl>> = {
	user: GRAY,
	syscall: SKY,
	vfs: TEAL,
	fs: GREEN,
	pagecache: OLIVE,
	block: ORANGE,
	device: [327, 45, 60],
	sched: [240, 22, 68],
	irq: ROSE,
};

/** The series that plots of every view share. */
const SERIES: Readonly<Record<string, Hsl>> = {
	calls: [212, 30, 62],
	read: [READ, 77, 60],
	written: [WRITE, 100, 45],
	errors: [14, 90, 56],
	p50: [160, 55, 48],
	p99: [327, 50, 64],
	max: [265, 48, 70],
	time: TEAL,
	rest: [212, 8, 50],
	before: [212, 14, 62],
	after: [184, 62, 48],
};

const FIXED: Partial<Record<Kind, Readonly<Record<string, Hsl>>>> = {
	syscall: SYSCALLS,
	class: CLASSES,
	layer: LAYERS,
	series: SERIES,
};

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
	// Those of calls mean something: no other call looks like a read or a write.
	const meant = (at: number) => kind === "syscall" && MEANT.has(at);
	let place = hash(key) % PALETTE.length;
	while (meant(place)) place = (place + 1) % PALETTE.length;
	for (let step = 0; step < PALETTE.length && (used.has(place) || meant(place)); step += 1) {
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
	const fixed = FIXED[kind]?.[key];
	return css(fixed ?? PALETTE[slot(kind, key)] ?? [0, 0, 50], theme);
}

export const ERROR: Readonly<Record<Theme, string>> = { dark: "hsl(14 90% 60%)", light: "hsl(14 90% 45%)" };

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
