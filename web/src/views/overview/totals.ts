// The sums that several parts of the overview share: one question instead of several.

import type { Columns } from "../../api/arrow";
import type { Resource } from "../../state/resource";
import { stripPixels, useColumns } from "../../state/session";

/** Whether reads and writes are distinguished: for some filters only their sum is known. */
export function tellsDirections(tiles: Columns): boolean {
	return tiles.rows === 0 || tiles.f64("bytes_read").some((v) => Number.isFinite(v));
}

/** Calls that returned an error, over time. */
export function useErrors(): Resource<Columns> {
	return useColumns({ path: "errors", pixels: stripPixels(), turn: "later" });
}
