// The numbers that a finding rests on, in words.

import type { Evidence } from "../../api/diagnosis";
import { PHRASES, RULES } from "../../api/evidence";
import { bytes, duration, exact, percent } from "../../lib/format";

/** A number, of which the name says what its unit is. */
function numberText({ name, value }: Evidence): string {
	if (name.endsWith("_ns")) return duration(value);
	if (/(^|_)bytes(_|$)/.test(name)) return bytes(value);
	if (/(^|_)share(_|$)/.test(name)) return percent(value);
	// The first three digits say enough of a ratio.
	const places = Math.abs(value) >= 100 ? 1 : 100;
	return exact(Math.round(value * places) / places);
}

const SINGULAR: Readonly<Record<string, string>> = { processes: "process", directories: "directory" };

/** A number of a rule in words; those of users' rules have only their names. */
export function evidenceText(rule: string, evidence: Evidence): string {
	const { name, value } = evidence;
	const number = numberText(evidence);
	const phrase = RULES.has(rule) ? (PHRASES[`${rule}/${name}`] ?? PHRASES[name]) : undefined;
	if (phrase === undefined) return `${name.replace(/_ns$/, "").replaceAll("_", " ")} ${number}`;
	const one = value === 1 && number === "1";
	const fitting = one
		? phrase.replace(
				/(\{\} )(\w+)/,
				(_, before: string, noun: string) => before + (SINGULAR[noun] ?? noun.replace(/s$/, "")),
			)
		: phrase;
	return fitting.replace("{}", () => number);
}

/** The numbers of a finding; one that is 0 shows nothing. */
export function evidenceOf(rule: string, evidence: readonly Evidence[]): string {
	return evidence
		.filter(({ value }) => value !== 0)
		.map((number) => evidenceText(rule, number))
		.join(" · ");
}
