// What is drawn of a device and of the page cache.

import type { Columns } from "../../api/arrow";
import { type Grid, type Heat, type Keyed, places, seriesByKey, type TileColumns } from "../../lib/buckets";
import { quantile } from "../../lib/scale";
import { literal } from "../../lib/sql";

export type Measure = "device" | "queue" | "requests" | "bytes";

/**
 * How many requests of each name were in a device, or waited for it, at once: their times shared out to the buckets
 * that they lie in. A request of a hundred milliseconds is in many.
 */
export function atOnceSql(device: string, measure: "device" | "queue", filtered: boolean): string {
	const [begin, end] = measure === "device" ? ["issued_ns", "completed_ns"] : ["queued_ns", "issued_ns"];
	const caused = filtered ? " AND rid IN (SELECT rid FROM syscalls WHERE $filter)" : "";
	return `WITH r AS (
  SELECT coalesce(comm, '') AS comm, greatest(${begin}, $from) AS a, least(${end}, $to) AS z
  FROM block WHERE device = ${literal(device)} AND ${end} > $from AND ${begin} < $to${caused}
), o AS (
  SELECT comm, a, z, unnest(range((a - $from) // $bucket, (z - $from) // $bucket + 1)) AS b FROM r
)
SELECT ($from - $start + b * $bucket)::DOUBLE AS t, comm AS key,
  (sum(least(z, $from + (b + 1) * $bucket) - greatest(a, $from + b * $bucket)) / $bucket)::DOUBLE AS n,
  $bucket::DOUBLE AS bucket, ($from - $start)::DOUBLE AS begin, ($to - $start)::DOUBLE AS ending
FROM o GROUP BY ALL ORDER BY ALL`;
}

/** The answer to `atOnceSql` as tiles: what they lie in stands in each row. */
export function atOnceTiles(answer: TileColumns): TileColumns {
	const first = (name: string) => answer.f64(name)[0];
	const meta: Readonly<Record<string, number | undefined>> = {
		bucket_ns: first("bucket"),
		from: first("begin"),
		to: first("ending"),
	};
	return {
		rows: answer.rows,
		f64: (name) => answer.f64(name),
		texts: (name) => answer.texts(name),
		flags: (name) => answer.flags(name),
		lists: (name) => answer.lists(name),
		has: (name) => answer.has(name),
		metaNumber: (name) => meta[name] ?? null,
	};
}

/** A column by who submitted the requests, the most first; beyond `most` names all others as one. */
export function byUser(answer: TileColumns, grid: Grid, column: string, factor: number, most: number): Keyed[] {
	const all = seriesByKey(answer, grid, column);
	for (const s of all) s.values = s.values.map((v) => v * factor);
	if (all.length <= most) return all;
	const values = new Float64Array(grid.length);
	let total = 0;
	for (const s of all.slice(most)) {
		total += s.total;
		s.values.forEach((v, i) => {
			values[i] = (values[i] ?? 0) + v;
		});
	}
	return [...all.slice(0, most), { key: null, label: "all others", values, total }];
}

/** A quantile of each bucket's histogram; NaN for a bucket without any. */
export function quantileLine(heat: Heat, length: number, share: number): Float64Array {
	const values = new Float64Array(length).fill(Number.NaN);
	for (let i = 0; i < length; i += 1) {
		const q = quantile(heat.counts.subarray(i * heat.rows, (i + 1) * heat.rows), share);
		if (q !== null) values[i] = q * 2 ** heat.low;
	}
	return values;
}

/** A column at its buckets; NaN where there is no row. */
export function sampled(answer: Pick<Columns, "rows" | "f64"> & TileColumns, grid: Grid, column: string): Float64Array {
	const values = answer.f64(column);
	const at = places(answer, grid);
	const made = new Float64Array(grid.length).fill(Number.NaN);
	for (let i = 0; i < answer.rows; i += 1) {
		const place = at[i] ?? -1;
		if (place >= 0) made[place] = values[i] ?? Number.NaN;
	}
	return made;
}

/** Part of a whole for each bucket; NaN where the whole is nothing. */
export function ratio(part: Float64Array, whole: Float64Array): Float64Array {
	return part.map((v, i) => ((whole[i] ?? 0) > 0 ? v / (whole[i] ?? 1) : Number.NaN));
}

export function sum(values: Float64Array): number {
	let all = 0;
	for (const v of values) if (Number.isFinite(v)) all += v;
	return all;
}

/** Histograms without their lowest power, which holds what has no duration. */
export function withoutUnseen(answer: TileColumns): TileColumns {
	return {
		rows: answer.rows,
		f64: (name) => answer.f64(name),
		texts: (name) => answer.texts(name),
		flags: (name) => answer.flags(name),
		has: (name) => answer.has(name),
		metaNumber: (name) => answer.metaNumber(name),
		lists: (name) => answer.lists(name).map((list) => list.map((n, power) => (power === 0 ? 0 : n))),
	};
}
