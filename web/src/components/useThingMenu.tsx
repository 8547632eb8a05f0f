// The menu of a file, directory, call, thread or layer: where a click on its row leads.

import { type MouseEvent, type ReactNode, useState } from "react";
import type { Filter } from "../api/types";
import { mergeFilters } from "../lib/filters";
import { literal } from "../lib/sql";
import type { Thing } from "../lib/sums";
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
		if (event.altKey) {
			leaveOut(thing);
			return;
		}
		// A key press on a button is a click without a place.
		const box = event.currentTarget.getBoundingClientRect();
		const pointed = event.clientX !== 0 || event.clientY !== 0;
		setOpened({ thing, x: pointed ? event.clientX : box.left + 24, y: pointed ? event.clientY : box.bottom });
	};
	const menu = opened ? (
		<Menu
			x={opened.x}
			y={opened.y}
			title={<Text of={opened.thing.label} />}
			entries={entriesOf(opened.thing, slowest)}
			close={() => setOpened(null)}
		/>
	) : null;
	return { open, menu };
}

/** The filter for a thing. */
function filterOf({ member, value }: Thing): Filter {
	return { [member]: member === "path" ? String(value) : [value] };
}

function only(thing: Thing): void {
	if (thing.member === "path") setFilter(mergeFilters(store.get().filter, filterOf(thing)));
	else toggleFilter(thing.member, thing.value);
}

function leaveOut({ member, value }: Thing): void {
	if (member === "path") setFilter({ ...store.get().filter, not_path: String(value) });
	else toggleFilter(member, value, true);
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
	const own = filterOf(thing);
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
	// A saved page has no answers about directories.
	if (member === "path" && archive === null) {
		entries.unshift(
			{
				label: "Its files, most time first",
				note: "view SQL",
				run: () => store.go({ view: "sql", params: { sql: pathsOf(String(value)) } }),
			},
			{ label: "Its files by offset", note: "view File", run: () => store.go({ view: "file", filter: filter() }) },
		);
	}
	if (member === "tid") {
		entries.unshift({ label: "Its timeline", run: () => store.go({ view: "timeline", filter: filter() }) });
	}
	entries.push(
		{ label: "Only these", note: "add to the filter", run: () => only(thing) },
		{ label: "All others", note: "Alt+click", run: () => leaveOut(thing) },
	);
	return entries;
}
