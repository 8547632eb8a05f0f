// How a file is read and written, in words.

import { counted, exact, percent } from "../../lib/format";
import type { Figures } from "./accesses";

export interface Pattern {
	/** Share of the calls that begin where the one before of the same thread ended. */
	sequential: number;
	/** Share that begin there or further on. */
	forward: number;
	/** Share that begin before the beginning of the one before. */
	backward: number;
	/** Times that the file is gone through, each from a lower offset on. */
	passes: number;
}

/** From so large a share on a pattern has a name. */
const MOSTLY = 0.75;
/** Jumps go either way if each way has this share of them: half the jumps of random accesses go back. */
const EITHER = 0.25;
/** Jumps that are a smaller share of the calls do not matter. */
const FEW_JUMPS = 0.02;

/** `96 % sequential in 9 passes`. */
export function patternText({ sequential, forward, backward, passes }: Pattern): string {
	const times = passes === 1 ? "one pass" : `${exact(passes)} passes`;
	const jumps = 1 - sequential;
	const random = jumps >= FEW_JUMPS && Math.min(forward - sequential, backward) >= jumps * EITHER;
	if (random)
		return sequential >= 0.1
			? `${percent(sequential)} sequential, the others random`
			: `random (${percent(sequential)} sequential)`;
	if (sequential >= MOSTLY) return `${percent(sequential)} sequential in ${times}`;
	if (forward >= MOSTLY) return `forward with gaps in ${times} (${percent(sequential)} sequential)`;
	if (backward >= MOSTLY) return `backward (${percent(sequential)} sequential)`;
	if (1 - forward - backward >= MOSTLY) return "over the same bytes again and again";
	return `scattered (${percent(sequential)} sequential)`;
}

/** How page faults follow each other. A fault maps pages around it, too, so where it ended is not known. */
export interface Touches {
	/** Share that are further on than the one before. */
	forward: number;
	backward: number;
	/** In the direction that most of them take. */
	passes: number;
}

/** `100 % backward in one pass`. */
export function touchesText({ forward, backward, passes }: Touches): string {
	const times = passes === 1 ? "one pass" : `${exact(passes)} passes`;
	if (forward >= MOSTLY) return `${percent(forward)} forward in ${times}`;
	if (backward >= MOSTLY) return `${percent(backward)} backward in ${times}`;
	if (1 - forward - backward >= MOSTLY) return "on the same pages again and again";
	return `in no order (${percent(forward)} forward, ${percent(backward)} backward)`;
}

export type Figured = Pick<Figures, "reads" | "writes" | "touches" | "faults" | "threads">;

/** The patterns in a sentence, which leaves out a null. */
export function verdictText({ reads, writes, touches, faults, threads }: Figured): string {
	const parts = [
		writes ? `writes ${patternText(writes)}` : "",
		reads ? `reads ${patternText(reads)}` : "",
		touches ? `${counted(faults, "page fault")}, ${touchesText(touches)}` : "",
	].filter((part) => part !== "");
	if (parts.length === 0) return "";
	const text = parts.join("; ");
	// One thread's calls follow each other; those of several threads are in no order.
	return threads > 1 ? `Per thread: ${text}` : `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}
