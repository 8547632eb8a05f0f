// The sums that summary and plots share: one question instead of three.

import type { Columns } from "../../api/arrow";
import type { Resource } from "../../state/resource";
import { useColumns } from "../../state/session";

/** About as many buckets as there are pairs of pixels on a wide screen; the server rounds to what it has. */
export const BUCKETS = 600;

/** Whether reads and writes are told apart: for some filters only their sum is known. */
export function tellsDirections(tiles: Columns): boolean {
	return tiles.rows === 0 || tiles.f64("bytes_read").some((v) => Number.isFinite(v));
}

/** Sums of all calls over time, with histograms of their durations. */
export function useTotals(): Resource<Columns> {
	return useColumns({ path: "tiles", params: { by: "none", latency: 1 }, pixels: BUCKETS });
}
