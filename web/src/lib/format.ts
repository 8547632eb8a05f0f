// Numbers as people read them. Every function takes what the API gives: nanoseconds, bytes, counts.

const GROUP = "\u202f"; // narrow no-break space

/** Three significant digits, without an exponent. */
function digits(value: number): string {
	const size = Math.abs(value);
	if (size >= 100 || value === 0) return value.toFixed(0);
	if (size >= 10) return trim(value.toFixed(1));
	return trim(value.toFixed(2));
}

function trim(text: string): string {
	return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

const SECOND = 1e9;

/** A duration in the unit that fits: `812 ns`, `1.23 µs`, `45.6 ms`, `2 m 05 s`. */
export function duration(ns: number): string {
	if (!Number.isFinite(ns)) return "–";
	const size = Math.abs(ns);
	if (size < 999.5) return `${digits(ns)} ns`;
	if (size < 999.5e3) return `${digits(ns / 1e3)} µs`;
	if (size < 999.5e6) return `${digits(ns / 1e6)} ms`;
	if (size < 99.95 * SECOND) return `${digits(ns / SECOND)} s`;
	const sign = ns < 0 ? "-" : "";
	const seconds = Math.round(size / SECOND);
	const two = (n: number) => n.toString().padStart(2, "0");
	if (seconds < 3600) return `${sign}${Math.floor(seconds / 60)} m ${two(seconds % 60)} s`;
	const minutes = Math.round(seconds / 60);
	if (minutes < 48 * 60) return `${sign}${Math.floor(minutes / 60)} h ${two(minutes % 60)} m`;
	const hours = Math.round(minutes / 60);
	return `${sign}${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Every digit, in groups of three. */
export function exact(value: number): string {
	if (!Number.isFinite(value)) return "–";
	const text = Number.isInteger(value) ? value.toFixed(0) : value.toString();
	const [whole = "", fraction] = text.split(".");
	const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, GROUP);
	return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/** A duration with all its nanoseconds: `1 234 567 ns`. */
export function exactDuration(ns: number): string {
	return Number.isFinite(ns) ? `${exact(Math.round(ns))} ns` : "not known";
}

/** As it is read, and exactly: `1.23 ms (1 234 567 ns)`. */
export function bothDurations(ns: number): string {
	return Math.abs(ns) < 1000 ? exactDuration(ns) : `${duration(ns)} (${exactDuration(ns)})`;
}

/** A number of things, with the word in its form: `1 access`, `2 accesses`. */
export function counted(value: number, one: string, many = `${one}s`, format = exact): string {
	return `${format(value)} ${value === 1 ? one : many}`;
}

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Bytes in binary units: `4 KiB`. */
export function bytes(value: number): string {
	if (!Number.isFinite(value)) return "–";
	let size = value;
	let unit = 0;
	while (Math.abs(size) >= 999.5 && unit < BINARY.length - 1) {
		size /= 1024;
		unit += 1;
	}
	return `${digits(size)} ${BINARY[unit]}`;
}

const DECIMAL = ["", " k", " M", " G", " T"];

/** A count: `950`, `12.3 k`, `4.5 M`. */
export function count(value: number): string {
	if (!Number.isFinite(value)) return "–";
	let size = value;
	let unit = 0;
	while (Math.abs(size) >= 999.5 && unit < DECIMAL.length - 1) {
		size /= 1000;
		unit += 1;
	}
	return `${digits(size)}${DECIMAL[unit]}`;
}

/** How many calls are in progress, on average: `0.25`, `3.1`, `28`. */
export function inProgress(value: number): string {
	if (!Number.isFinite(value)) return "–";
	return value >= 9.95 ? value.toFixed(0) : value.toFixed(value >= 0.995 || value === 0 ? 1 : 2);
}

/** A share of 1 as percent. */
export function percent(share: number): string {
	if (!Number.isFinite(share)) return "–";
	const value = share * 100;
	if (value > 0 && value < 0.01) return "< 0.01 %";
	if (value < 100 && value > 99.99) return "> 99.99 %";
	return `${digits(value)} %`;
}

/** A point in time since the session's start, as finely as `step` (the distance of ticks) asks: `3.000 250 s`. */
export function time(ns: number, step: number): string {
	const needed = Math.max(0, Math.min(9, Math.ceil(-Math.log10(Math.max(step, 1) / SECOND) - 1e-9)));
	// Whole groups of three, as they are read: micro- and nanoseconds.
	const decimals = needed > 3 ? Math.ceil(needed / 3) * 3 : needed;
	const sign = ns < 0 ? "-" : "";
	// Whole seconds and the rest apart, so that a day keeps its nanoseconds.
	const unit = 10 ** (9 - decimals);
	const rounded = Math.round(Math.abs(ns) / unit) * unit;
	const seconds = Math.floor(rounded / SECOND);
	const rest = Math.round(rounded - seconds * SECOND);
	const fraction = decimals === 0 ? "" : `.${groups(rest.toString().padStart(9, "0").slice(0, decimals))}`;
	if (seconds < 60) return `${sign}${seconds}${fraction} s`;
	const two = (n: number) => n.toString().padStart(2, "0");
	const tail = `${two(seconds % 60)}${fraction}`;
	if (seconds < 3600) return `${sign}${Math.floor(seconds / 60)}:${tail}`;
	return `${sign}${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${tail}`;
}

function groups(fraction: string): string {
	return fraction.replace(/(\d{3})(?=\d)/g, `$1${GROUP}`);
}

/** A point in time with all its nanoseconds. */
export function exactTime(ns: number): string {
	return time(ns, 1);
}

/** Date and time of day of a point in time (milliseconds since 1970), in the reader's zone. */
export function wallTime(unixMs: number): string {
	const date = new Date(unixMs);
	const two = (n: number) => n.toString().padStart(2, "0");
	return (
		`${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
		`${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
	);
}

/** How long ago, in words short enough for a list. */
export function ago(unixMs: number, nowMs: number): string {
	const seconds = Math.max(0, (nowMs - unixMs) / 1e3);
	if (seconds < 60) return "just now";
	if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
	if (seconds < 36 * 3600) return `${Math.floor(seconds / 3600)} h ago`;
	return `${Math.floor(seconds / 86400)} days ago`;
}

/**
 * Text that a traced program chose, made visible: control characters and those that turn the direction of text
 * stand as escapes, so that a name can neither break a line nor pretend to be another.
 */
export function visible(text: string): string {
	return text.replace(
		// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
		/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
		(c) => {
			if (c === "\n") return "\\n";
			if (c === "\t") return "\\t";
			const code = c.charCodeAt(0);
			return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
		},
	);
}

/** The end of a path, with the beginning left out where it is longer than `max` characters. */
export function shortPath(path: string, max: number): string {
	const text = visible(path);
	if (text.length <= max) return text;
	const name = text.slice(text.lastIndexOf("/"));
	if (name.length + 1 >= max) return `…${text.slice(text.length - max + 1)}`;
	return `${text.slice(0, max - name.length - 1)}…${name}`;
}
