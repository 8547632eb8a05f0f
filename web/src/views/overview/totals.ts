// The sums that several parts of the overview share: one question instead of several.

import type { Columns } from "../../api/arrow";
import type { Resource } from "../../state/resource";
import { stripPixels, useColumns } from "../../state/session";

/** Whether reads and writes are distinguished: for some filters only their sum is known. */
export function tellsDirections(tiles: Columns): boolean {
	return tiles.rows === 0 || tiles.f64("bytes_read").some((v) => Number.isFinite(v));
}

/** Sums of all calls and page faults over time by what they do, with histograms of the durations of calls. */
export function useTotals(): Resource<Columns> {
	return useColumns({
		path: "tiles",
		params: { by: "purpose", latency: 1, busy: 1, faults: 1 },
		pixels: stripPixels(),
	});
}

/** Calls that returned an error, over time. */
export function useErrors(): Resource<Columns> {
	return useColumns({ path: "errors", pixels: stripPixels(), turn: "later" });
}
