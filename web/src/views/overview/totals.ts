// The sums that several parts of the overview share: one question instead of several.

import type { Columns } from "../../api/arrow";
import type { Resource } from "../../state/resource";
import { useColumns } from "../../state/session";

/** About as many buckets as there are pairs of pixels on a wide screen; the server rounds to what it has. */
export const BUCKETS = 600;

/** Whether reads and writes are distinguished: for some filters only their sum is known. */
export function tellsDirections(tiles: Columns): boolean {
	return tiles.rows === 0 || tiles.f64("bytes_read").some((v) => Number.isFinite(v));
}

/** Sums of all calls over time by what they do, with histograms of their durations. */
export function useTotals(): Resource<Columns> {
	return useColumns({ path: "tiles", params: { by: "purpose", latency: 1 }, pixels: BUCKETS });
}

/** Calls that returned an error, over time. */
export function useErrors(): Resource<Columns> {
	return useColumns({ path: "errors", pixels: BUCKETS });
}
