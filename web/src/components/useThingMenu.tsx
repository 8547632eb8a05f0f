// The menu of a file, directory, call, thread or layer: where a click on its row leads.

import { type MouseEvent, type ReactNode, useState } from "react";
import type { Filter } from "../api/types";
import { mergeFilters, withoutPath, withPath } from "../lib/filters";
import { visible } from "../lib/format";
import { literal } from "../lib/quote";
import type { Thing } from "../lib/sums";
import { may } from "../state/access";
import { archive } from "../state/server";
import { useSlowest } from "../state/slowest";
import { setFilter, store, toggleFilter } from "../state/store";
import { Menu, type MenuEntry } from "./menu";
import { Text } from "./text";

interface Opened {
	thing: Thing;
	x: number;
	y: number;
}

/** `open` is for clicks on rows; `menu` is to be shown somewhere. */
export function useThingMenu(): { open: (thing: Thing, event: MouseEvent) => void; menu: ReactNode } {
	const [opened, setOpened] = useState<Opened | null>(null);
	const slowest = useSlowest();
	const open = (thing: Thing, event: MouseEvent) => {
		if (event.altKey && leaveOut(thing)) return;
		// A key press on a button is a click without a place.
		const box = event.currentTarget.getBoundingClientRect();
		const pointed = event.clientX !== 0 || event.clientY !== 0;
		setOpened({ thing, x: pointed ? event.clientX : box.left + 24, y: pointed ? event.clientY : box.bottom });
	};
	const entries = opened ? entriesOf(opened.thing, slowest) : [];
	const menu =
		opened && entries.length > 0 ? (
			<Menu
				x={opened.x}
				y={opened.y}
				title={<Text of={opened.thing.label} />}
				entries={entries}
				close={() => setOpened(null)}
			/>
		) : null;
	return { open, menu };
}

/** Filters by all but a thing; false where no filter can. */
function leaveOut({ member, value }: Thing): boolean {
	if (member !== "path") {
		toggleFilter(member, value, true);
		return true;
	}
	const others = withoutPath(store.get().filter, String(value));
	if (others) setFilter(others);
	return others !== null;
}

/** The paths that begin in a way, as what the page shows has them: the one with the most time first. */
function pathsOf(beginning: string): string {
	return `SELECT path, count(*) AS calls, sum(bytes) AS bytes, sum(dur_ns) AS time_ns, max(dur_ns) AS max_ns
FROM syscalls
WHERE starts_with(path, ${literal(beginning)}) AND ts_ns >= $from AND ts_ns < $to AND $filter
GROUP BY path ORDER BY time_ns DESC`;
}

function entriesOf(thing: Thing, slowest: (filter: Filter) => void): MenuEntry[] {
	const { member, value, file } = thing;
	if (member === "path") return entriesOfPaths(String(value), slowest);
	const own: Filter = { [member]: [value] };
	const filter = () => mergeFilters(store.get().filter, own);
	const entries: MenuEntry[] = [
		{ label: "Slowest call", note: "where its time went", run: () => slowest(own) },
		{
			label: "All calls, slowest first",
			run: () => store.go({ view: "table", filter: filter(), params: { sort: "-dur_ns" } }),
		},
	];
	const shown = member === "file" ? value : file;
	if (shown !== undefined) {
		entries.unshift({
			label: "Accesses by offset",
			note: "view File",
			run: () => store.go({ view: "file", params: { file: String(shown) } }),
		});
	}
	if (member === "tid") {
		entries.unshift({ label: "Its timeline", run: () => store.go({ view: "timeline", filter: filter() }) });
	}
	entries.push(
		{ label: "Only these", note: "add to the filter", run: () => toggleFilter(member, value) },
		{ label: "All others", note: "Alt+click", run: () => toggleFilter(member, value, true) },
	);
	return entries;
}

/** No filter has just the paths that count together, so each entry says which paths it has. */
function entriesOfPaths(directory: string, slowest: (filter: Filter) => void): MenuEntry[] {
	const entries: MenuEntry[] = [];
	const name = visible(directory);
	// A saved page has no answers about directories.
	if (archive === null && may("query")) {
		entries.push({
			label: `Files in ${name}, most time first`,
			note: "view SQL",
			run: () => store.go({ view: "sql", params: { sql: pathsOf(directory) } }),
		});
	}
	const filter = withPath(store.get().filter, directory);
	if (filter && archive === null) {
		entries.push({
			label: `Files with ${name}, by offset`,
			note: "view File",
			run: () => store.go({ view: "file", filter }),
		});
	}
	if (filter) {
		entries.push(
			{
				label: `Slowest call with ${name}`,
				note: "where its time went",
				run: () => slowest({ path: directory }),
			},
			{
				label: `All calls with ${name}, slowest first`,
				run: () => store.go({ view: "table", filter, params: { sort: "-dur_ns" } }),
			},
			{ label: `Paths with ${name}`, note: "add to the filter", run: () => setFilter(filter) },
		);
	}
	const others = withoutPath(store.get().filter, directory);
	if (others) entries.push({ label: `Paths without ${name}`, note: "Alt+click", run: () => setFilter(others) });
	return entries;
}
