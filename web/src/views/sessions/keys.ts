// Sums of many sessions, and how they change from day to day.

import type { FleetGroup } from "../../api/types";

/** What sessions can be summed up by, in the order of the choice, and what a value of it is called. */
export const KEYS = ["command", "host", "day", "finding", "tenant", "volume", "device"] as const;
export type Key = (typeof KEYS)[number];

export const TITLES: Readonly<Record<Key, string>> = {
	command: "Command",
	host: "Host",
	day: "Day",
	finding: "Finding",
	tenant: "Tenant",
	volume: "Volume",
	device: "Device",
};

export function isKey(text: string): text is Key {
	return (KEYS as readonly string[]).includes(text);
}

/** A group's value of a key. The empty text: it has none. */
export function keyOf(group: FleetGroup, key: Key): string {
	return group[key] ?? "";
}

export interface Days {
	/** Every day from the first to the last, also those without a session. */
	readonly days: readonly string[];
	/** Time on each of the days, nanoseconds, by value of the key. */
	readonly times: ReadonlyMap<string, readonly number[]>;
}

const DAY_MS = 86_400_000;
/** A year and a day: with more, a day has no pixel of its own. */
const MOST_DAYS = 366;

/** The times of groups by day and by key, over the days. Of many days the last ones count. */
export function overDays(groups: readonly FleetGroup[], key: Key): Days {
	const known = groups.flatMap((group) => (group.day === null ? [] : [Date.parse(group.day)])).filter(Number.isFinite);
	if (known.length === 0) return { days: [], times: new Map() };
	const last = known.reduce((a, b) => Math.max(a, b));
	const first = Math.max(
		known.reduce((a, b) => Math.min(a, b)),
		last - (MOST_DAYS - 1) * DAY_MS,
	);
	const length = Math.round((last - first) / DAY_MS) + 1;
	const days = Array.from({ length }, (_, i) => new Date(first + i * DAY_MS).toISOString().slice(0, 10));
	const times = new Map<string, number[]>();
	for (const group of groups) {
		const at = group.day === null ? -1 : Math.round((Date.parse(group.day) - first) / DAY_MS);
		const value = keyOf(group, key);
		const line = times.get(value) ?? Array.from({ length }, () => 0);
		if (at in line) line[at] = (line[at] ?? 0) + group.time_ns;
		times.set(value, line);
	}
	return { days, times };
}
