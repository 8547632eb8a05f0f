// The numbers that a finding rests on, in words.

import type { Evidence } from "../../api/diagnosis";
import { bytes, duration, exact, percent } from "../../lib/format";

/** A number with its name, which says what its unit is. */
export function evidenceText({ name, value }: Evidence): string {
	const words = name.replaceAll("_", " ");
	if (name.endsWith("_ns")) return `${words.slice(0, -3)} ${duration(value)}`;
	if (/(^|_)bytes(_|$)/.test(name)) return `${words} ${bytes(value)}`;
	if (/(^|_)share(_|$)/.test(name)) return `${words} ${percent(value)}`;
	// The first three digits say enough of a ratio.
	const places = Math.abs(value) >= 100 ? 1 : 100;
	return `${words} ${exact(Math.round(value * places) / places)}`;
}

/** The numbers of a finding; one that is 0 shows nothing. */
export function evidenceOf(evidence: readonly Evidence[]): string {
	return evidence
		.filter(({ value }) => value !== 0)
		.map(evidenceText)
		.join(" · ");
}
