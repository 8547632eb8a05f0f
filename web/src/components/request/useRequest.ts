import type { RequestAnswer } from "../../api/types";
import type { Resource } from "../../state/resource";
import { useJson } from "../../state/session";
import { store } from "../../state/store";
import { number, spanOf } from "./rows";

/** One request with everything below it. What is recorded does not change, so it is not asked for again. */
export function useRequest(rid: number | null): Resource<RequestAnswer> {
	return useJson<RequestAnswer>(rid === null ? null : { path: `requests/${rid}`, windowed: false, filtered: false });
}

/** Goes to the call of the thread before or after; a window that does not have it moves there. */
export function stepFrom(answer: RequestAnswer | undefined, by: 1 | -1): void {
	const next = by > 0 ? answer?.neighbors.after[0] : answer?.neighbors.before.at(-1);
	const rid = next ? number(next, "rid") : null;
	if (!next || rid === null) return;
	const { window } = store.get();
	if (window.kind !== "range") {
		store.go({ rid });
		return;
	}
	const { from, to } = spanOf(next);
	const width = window.to - window.from;
	const seen = to > window.from && from < window.to;
	store.go(
		seen
			? { rid }
			: {
					rid,
					window: { kind: "range", from: Math.max(0, from - width / 2), to: Math.max(0, from - width / 2) + width },
				},
	);
}

/** The window that shows a request with some room around it. */
export function windowAround(answer: RequestAnswer): { kind: "range"; from: number; to: number } {
	const t = Number(answer.row["ts_ns"] ?? 0);
	const dur = Math.max(Number(answer.row["dur_ns"] ?? 0), 200);
	return { kind: "range", from: Math.max(0, t - dur), to: t + 2 * dur };
}
