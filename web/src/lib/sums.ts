// Sums by key over a whole window, of tiles: what the pyramid answers at once, however many calls there are.

import type { TileColumns } from "./buckets";
import { quantile } from "./scale";

export interface Sum {
	/** Null for all other keys together, and for calls without one. */
	key: string | null;
	/** All other keys together. */
	rest: boolean;
	label: string | null;
	calls: number;
	errors: number;
	/** Errors that are no answers; null where that is not known. */
	failures: number | null;
	bytes: number;
	time: number;
	/** Time within the window, whenever the calls began; as `time` where it was not asked for. */
	busy: number;
	max: number;
	/** Within a power of two; null without histograms. */
	p99: number | null;
	/** Some calls of this key may be in the rest. */
	atLeast: boolean;
	/** What is in the rest makes no difference to its time. */
	slight: boolean;
}

/** Part of a sum of time that makes no difference to who reads it. */
const UNSEEN = 0.005;

/** One sum a key, most time first, the rest last. */
export function sumsOf(tiles: TileColumns): Sum[] {
	const keys = tiles.texts("key");
	const labels = tiles.texts("label");
	const rest = tiles.has("rest") ? tiles.flags("rest") : [];
	const atLeast = tiles.has("at_least") ? tiles.flags("at_least") : [];
	const column = (name: string) => tiles.f64(name);
	const [calls, errors, bytes, time, max] = [
		column("calls"),
		column("errors"),
		column("bytes"),
		column("time_ns"),
		column("max_ns"),
	];
	const busy = tiles.has("busy_ns") ? column("busy_ns") : time;
	const lists = tiles.has("latency") ? tiles.lists("latency") : null;
	const found = new Map<string, Sum & { histogram: number[] }>();
	for (let i = 0; i < tiles.rows; i += 1) {
		const key = keys[i] ?? null;
		const name = rest[i] ? "rest" : key === null ? "none" : `key ${key}`;
		let sum = found.get(name);
		if (!sum) {
			sum = {
				key: rest[i] ? null : key,
				rest: rest[i] === true,
				label: labels[i] ?? key,
				calls: 0,
				errors: 0,
				failures: null,
				bytes: 0,
				time: 0,
				busy: 0,
				max: 0,
				p99: null,
				atLeast: false,
				slight: false,
				histogram: [],
			};
			found.set(name, sum);
		}
		sum.calls += calls[i] || 0;
		sum.errors += errors[i] || 0;
		sum.bytes += bytes[i] || 0;
		sum.time += time[i] || 0;
		sum.busy += busy[i] || 0;
		sum.max = Math.max(sum.max, max[i] || 0);
		sum.atLeast ||= atLeast[i] === true;
		const list = lists?.[i];
		if (list) for (let b = 0; b < list.length; b += 1) sum.histogram[b] = (sum.histogram[b] ?? 0) + (list[b] ?? 0);
	}
	// What may be missing is in the rest: less than can be seen is not worth a mark.
	const inRest = found.get("rest")?.time ?? 0;
	return [...found.values()]
		.map(({ histogram, ...sum }) => ({
			...sum,
			slight: inRest <= sum.time * UNSEEN,
			p99: quantile(histogram, 0.99),
		}))
		.sort((a, b) => Number(a.rest) - Number(b.rest) || b.busy - a.busy);
}
