// Comparisons in words and numbers.

import type { Change, Comparison, DiffRow, Figure, Metric, Verdict } from "../../api/compare";
import { bytes, count, duration, exact, exactDuration, percent } from "../../lib/format";

export const METRICS: Readonly<Record<Metric, string>> = {
	calls: "Calls",
	errors: "Errors",
	asked_bytes: "Bytes requested",
	bytes: "Bytes transferred",
	time: "Time in calls",
	p50: "p50",
	p90: "p90",
	p99: "p99",
	p999: "p99.9",
	longest: "Longest",
	tail: "Long calls",
	first_call: "Started",
	last_call: "Ended",
	findings: "Findings",
};

const TIMES: ReadonlySet<Metric> = new Set<Metric>([
	"time",
	"p50",
	"p90",
	"p99",
	"p999",
	"longest",
	"first_call",
	"last_call",
]);

export function shown(metric: Metric, value: number | null): string {
	if (value === null) return "–";
	if (TIMES.has(metric)) return duration(value);
	return metric === "bytes" || metric === "asked_bytes" ? bytes(value) : count(value);
}

export function precise(metric: Metric, value: number | null): string {
	if (value === null) return "not measured";
	if (TIMES.has(metric)) return exactDuration(value);
	return `${exact(Math.round(value * 100) / 100)}${metric === "bytes" || metric === "asked_bytes" ? " bytes" : ""}`;
}

/** A part of less than one in so many is as good as nothing. */
const NEARLY = 100;

/** How much it changed: as a factor where it is large, as percent where it is small. */
export function changed({ before, after, change }: Pick<Figure, "before" | "after" | "change">): string {
	if (before === null || after === null) return "";
	if (before === after) return "=";
	// A finding has no share: it is there, or not.
	if (change === null) return before === 0 ? "new" : after === 0 ? "gone" : "";
	const factor = 1 + change;
	if (factor >= 3) return `× ${Number(factor.toPrecision(3))}`;
	if (after === 0) return "gone";
	if (factor < 1 / NEARLY) return "nearly gone";
	if (factor <= 1 / 3) return `÷ ${Number((1 / factor).toPrecision(3))}`;
	return `${change > 0 ? "+" : "−"}${percent(Math.abs(change))}`;
}

export const VERDICTS: Readonly<Record<Verdict, string>> = {
	same: "the same",
	within_noise: "within noise",
	worse: "worse",
	better: "better",
	mixed: "mixed",
	differs: "differs; whether for the better is not known",
	not_comparable: "not comparable",
};

const CHANGES: ReadonlySet<Verdict> = new Set<Verdict>(["worse", "better", "mixed", "differs"]);

export function figureOf(row: DiffRow, metric: Metric): Figure | undefined {
	return row.figures.find((f) => f.metric === metric);
}

export function hasChanged(row: DiffRow): boolean {
	return row.status !== "both" || row.figures.some((f) => CHANGES.has(f.verdict));
}

/** Rows for a search and a choice; those with the largest change of a metric first, or as they came. */
export function chosenRows(
	rows: readonly DiffRow[],
	search: string,
	onlyChanged: boolean,
	sort: Metric | null,
): DiffRow[] {
	const wanted = search.trim().toLowerCase();
	const found = rows.filter(
		(row) =>
			(!onlyChanged || hasChanged(row)) &&
			(wanted === "" || row.name.toLowerCase().includes(wanted) || (row.on ?? "").toLowerCase().includes(wanted)),
	);
	if (sort === null) return found;
	const difference = (row: DiffRow) => {
		const figure = figureOf(row, sort);
		return Math.abs((figure?.after ?? 0) - (figure?.before ?? 0));
	};
	return found.sort((a, b) => difference(b) - difference(a));
}

/** Metrics that any row has, in the order of their first appearance. */
export function metricsOf(rows: readonly DiffRow[]): Metric[] {
	return [...new Set(rows.flatMap((row) => row.figures.map((f) => f.metric)))];
}

/** What a change is, in a sentence. */
export function changeText(change: Change): string {
	if (change.metric === "findings") return change.subject;
	if (change.moves.length > 0) {
		const on = change.mostly_on === null ? "" : ` (mostly on ${change.mostly_on})`;
		return `${change.subject}${on}: ${change.moves.join(", ")}`;
	}
	const what = `${METRICS[change.metric].toLowerCase()} of ${change.subject}`;
	return `${what}: ${shown(change.metric, change.before)} → ${shown(change.metric, change.after)}`;
}

/** The difference of time that goes with a change. */
export function impact({ impact_ns }: Pick<Change, "impact_ns">): string {
	if (impact_ns === null || Math.round(impact_ns) === 0) return "";
	return `${impact_ns > 0 ? "+" : "−"}${duration(Math.abs(impact_ns))} of I/O time`;
}

/** What a visit of a layer is, to somebody who does not know the layers. */
function layerWords(layer: string, name: string): string {
	if (layer === "block") return `waiting in the queue of ${name}`;
	if (layer === "device") return `in device ${name}`;
	if (layer === "sched") {
		if (name === "run queue") return "waiting for a CPU";
		if (name === "io") return "waiting for I/O without a recorded request";
		if (name === "interruptible" || name === "uninterruptible") return `sleeping (${name})`;
		return `off the CPU (${name})`;
	}
	if (layer === "fs") return `in the file system (${name})`;
	if (layer === "pagecache") return "in the page cache";
	if (layer === "irq") return "in interrupts";
	return `in layer ${layer} (${name})`;
}

/** The layers with the largest differences of time, in a sentence; empty when none is large. */
export function layerSentence({ changes, unproven }: Pick<Comparison, "changes" | "unproven">): string {
	const parts = [...changes, ...unproven].flatMap((change) => {
		const found = /^layer (\S+) \((.+)\)$/.exec(change.subject);
		const ns = change.impact_ns;
		return found && change.metric === "time" && ns !== null
			? [{ layer: found[1] ?? "", name: found[2] ?? "", ns }]
			: [];
	});
	parts.sort((a, b) => Math.abs(b.ns) - Math.abs(a.ns));
	const largest = Math.abs(parts[0]?.ns ?? 0);
	const named = parts.filter((part) => Math.abs(part.ns) >= largest * 0.02).slice(0, 3);
	const said = named.map(
		({ layer, name, ns }) => `${ns > 0 ? "+" : "−"}${duration(Math.abs(ns))} ${layerWords(layer, name)}`,
	);
	return said.length === 0 ? "" : `Where the time went: ${said.join(", ")}.`;
}

/** How long the slow calls of a name took: the 99th percentile, or the longest of too few for one. */
export function slowOf(row: DiffRow): { name: string; figure: Figure } | null {
	const p99 = figureOf(row, "p99");
	if (p99 && p99.before !== null && p99.after !== null) return { name: `p99 of ${row.name}`, figure: p99 };
	const longest = figureOf(row, "longest");
	// The other side has none at all.
	if (!longest) return p99 && (p99.before ?? p99.after) !== null ? { name: `p99 of ${row.name}`, figure: p99 } : null;
	const calls = figureOf(row, "calls");
	const few = Math.min(calls?.before ?? 0, calls?.after ?? 0);
	return { name: `longest ${row.name}, as a side has ${few === 0 ? "none" : `only ${count(few)}`}`, figure: longest };
}

/** The calls by name with the largest difference of time, the largest first. */
export function movedCalls({ tables }: Pick<Comparison, "tables">, most: number): DiffRow[] {
	const difference = (row: DiffRow) => {
		const time = figureOf(row, "time");
		return Math.abs((time?.after ?? 0) - (time?.before ?? 0));
	};
	return [...tables.syscalls]
		.filter((row) => difference(row) > 0)
		.sort((a, b) => difference(b) - difference(a))
		.slice(0, most);
}
