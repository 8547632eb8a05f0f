// Rules that could not look at their calls, or at a part of them only, by what was missing.

import type { Diagnosis, NotObservable } from "../../api/diagnosis";
import { exact } from "../../lib/format";

/** Rules with the same reason. */
export interface Unseen {
	rules: string[];
	reason: string;
}

/** In the order of their first rules. */
export function byReason(unseen: readonly NotObservable[]): Unseen[] {
	const all = new Map<string, string[]>();
	for (const { rule, reason } of unseen) all.set(reason, [...(all.get(reason) ?? []), rule]);
	return [...all].map(([reason, rules]) => ({ rules, reason }));
}

/** `6 rules could not look, 2 at a part of their calls only`; empty if all could. */
export function unseenText({ not_observable: none, partly_observable: partly }: Diagnosis): string {
	const rules = (count: number) => (count === 1 ? "1 rule" : `${exact(count)} rules`);
	if (none.length === 0 && partly.length === 0) return "";
	if (none.length === 0) return `${rules(partly.length)} could look at a part of their calls only`;
	const part = partly.length > 0 ? `, ${exact(partly.length)} at a part of their calls only` : "";
	return `${rules(none.length)} could not look${part}`;
}
