// Calls that returned an error: those that failed, and those whose error was an answer.

import type { Columns } from "../../api/arrow";
import { count, counted } from "../../lib/format";

export interface Errors {
	failed: number;
	/** Errors that answer a question. */
	answers: number;
	/** Of these, look-ups of files that do not exist. */
	missing: number;
}

export function errorsOf(errors: Pick<Columns, "rows" | "f64" | "texts" | "flags">): Errors {
	const calls = errors.f64("calls");
	const names = errors.texts("errno");
	const flags = errors.flags("failed");
	const sums: Errors = { failed: 0, answers: 0, missing: 0 };
	for (let i = 0; i < errors.rows; i += 1) {
		const n = calls[i] ?? 0;
		if (flags[i]) sums.failed += n;
		else sums.answers += n;
		if (!flags[i] && (names[i] === "ENOENT" || names[i] === "ENOTDIR")) sums.missing += n;
	}
	return sums;
}

/** Most of the errors that are no failures, in a few words. */
export function answersText({ answers, missing }: Errors): string {
	if (missing > 0) return counted(missing, "look-up of a missing file", "look-ups of missing files", count);
	return answers > 0 ? counted(answers, "expected error", "expected errors", count) : "";
}
