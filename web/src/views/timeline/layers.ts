// Which layers the time of single calls went into: drawn below them on demand.

import { useMemo } from "react";
import type { Columns } from "../../api/arrow";
import { useColumns } from "../../state/session";

/** From the program's side down to the device, then what takes the CPU away. */
export const LAYER_ORDER = ["user", "syscall", "vfs", "fs", "pagecache", "block", "device", "sched", "irq"] as const;

export interface Share {
	layer: string;
	/** Of the call's time, between 0 and 1. */
	share: number;
}

/** The calls of a window that took the longest: those are the ones that are wide enough to show layers. */
const MOST = 3000;

/** Shares by request, of the longest calls in the window; null while they are not wanted or not there. */
export function useLayers(wanted: boolean): ReadonlyMap<number, readonly Share[]> | null {
	const answer = useColumns(
		wanted ? { path: "layers", params: { mode: "requests", sort: "-dur_ns", limit: MOST } } : null,
	);
	return useMemo(() => (answer.data ? sharesOf(answer.data) : null), [answer.data]);
}

export function sharesOf(columns: Pick<Columns, "rows" | "f64" | "codes">): Map<number, Share[]> {
	const rid = columns.f64("rid");
	const dur = columns.f64("dur");
	const own = columns.f64("self_ns");
	const { codes, values } = columns.codes("layer");
	const made = new Map<number, Share[]>();
	for (let i = 0; i < columns.rows; i += 1) {
		const id = rid[i] ?? -1;
		const share = (own[i] ?? 0) / Math.max(1, dur[i] ?? 0);
		if (!(share > 0)) continue;
		const list = made.get(id);
		const entry = { layer: values[codes[i] ?? -1] ?? "", share };
		if (list) list.push(entry);
		else made.set(id, [entry]);
	}
	const place = (layer: string) => (LAYER_ORDER as readonly string[]).indexOf(layer);
	for (const list of made.values()) list.sort((a, b) => place(a.layer) - place(b.layer));
	return made;
}
