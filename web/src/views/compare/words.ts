// Comparisons in words and numbers.

import type { Change, DiffRow, Figure, Metric, Verdict } from "../../api/compare";
import { bytes, count, duration, exact, exactDuration, percent } from "../../lib/format";

export const METRICS: Readonly<Record<Metric, string>> = {
	calls: "Calls",
	errors: "Errors",
	asked_bytes: "Bytes asked for",
	bytes: "Bytes moved",
	time: "Time",
	p50: "p50",
	p99: "p99",
	first_call: "First call at",
	last_call: "Last call until",
	findings: "Findings",
};

const TIMES: ReadonlySet<Metric> = new Set<Metric>(["time", "p50", "p99", "first_call", "last_call"]);

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

/** How much it changed: as a factor where it is large, as percent where it is small. */
export function changed({ before, after, change }: Pick<Figure, "before" | "after" | "change">): string {
	if (before === null || after === null) return "";
	if (before === after) return "=";
	// A finding has no share: it is there, or not.
	if (change === null) return before === 0 ? "new" : after === 0 ? "gone" : "";
	const factor = 1 + change;
	if (factor >= 3) return `× ${Number(factor.toPrecision(3))}`;
	if (after === 0) return "gone";
	if (factor <= 1 / 3) return `÷ ${Number((1 / factor).toPrecision(3))}`;
	return `${change > 0 ? "+" : "−"}${percent(Math.abs(change))}`;
}

export const VERDICTS: Readonly<Record<Verdict, string>> = {
	same: "the same",
	within_noise: "within noise",
	worse: "worse",
	better: "better",
	not_comparable: "not comparable",
};

export function figureOf(row: DiffRow, metric: Metric): Figure | undefined {
	return row.figures.find((f) => f.metric === metric);
}

export function hasChanged(row: DiffRow): boolean {
	return row.status !== "both" || row.figures.some((f) => f.verdict === "worse" || f.verdict === "better");
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
	const what = `${METRICS[change.metric].toLowerCase()} of ${change.subject}`;
	return `${what}: ${shown(change.metric, change.before)} → ${shown(change.metric, change.after)}`;
}
