// How a file is read and written, in words.

import { exact, percent } from "../../lib/format";

export interface Pattern {
	/** Share of the calls that begin where the one before of the same thread ended. */
	sequential: number;
	/** Share that begin there or further on. */
	forward: number;
	/** Times that the file is gone through, each from a lower offset on. */
	passes: number;
}

/** From so large a share on a pattern has a name. */
const MOSTLY = 0.75;

/** `96 % sequential in 9 passes`. */
export function patternText({ sequential, forward, passes }: Pattern): string {
	const times = passes === 1 ? "one pass" : `${exact(passes)} passes`;
	if (sequential >= MOSTLY) return `${percent(sequential)} sequential in ${times}`;
	if (forward >= MOSTLY) return `forward with gaps in ${times} (${percent(sequential)} sequential)`;
	return `scattered (${percent(sequential)} sequential)`;
}

/** What is known of both directions, in a sentence; what there is none of is left out. */
export function verdictText(reads: Pattern | null, writes: Pattern | null): string {
	const parts = [writes ? `writes ${patternText(writes)}` : "", reads ? `reads ${patternText(reads)}` : ""].filter(
		(part) => part !== "",
	);
	const text = parts.join("; ");
	return text === "" ? "" : `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
