import type { Columns } from "../../api/arrow";
import type { Rule } from "../../lib/directories";
import { type FlameRows, LEVELS, type Level } from "../../lib/flame";

/** The rows of an answer of address `flame`. */
export function flameRows(answer: Columns): FlameRows {
	const levels = Object.fromEntries(LEVELS.map((level) => [level, answer.texts(level)])) as Record<
		Level,
		(string | null)[]
	>;
	return { length: answer.rows, levels, ns: answer.f64("ns") };
}

/** How its files are put together. */
export function ruleOf(answer: Columns): Rule {
	const share = (name: string) => answer.metaNumber(name) ?? 0;
	return {
		little: share("little"),
		many: answer.metaNumber("many") ?? Number.POSITIVE_INFINITY,
		nearlyAll: share("nearly_all"),
	};
}
