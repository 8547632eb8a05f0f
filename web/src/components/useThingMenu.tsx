// The menu of a file, call, thread or layer: where a click on its row leads.

import { type MouseEvent, type ReactNode, useState } from "react";
import type { Filter } from "../api/types";
import { mergeFilters } from "../lib/filters";
import type { Thing } from "../lib/sums";
import { useSlowest } from "../state/slowest";
import { store, toggleFilter } from "../state/store";
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
			toggleFilter(thing.member, thing.value, true);
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

function entriesOf({ member, value, file }: Thing, slowest: (filter: Filter) => void): MenuEntry[] {
	const own = { [member]: [value] } as Filter;
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
