import type { RequestAnswer } from "../../api/types";
import type { Resource } from "../../state/resource";
import { useJson } from "../../state/session";

/** One request with everything below it. What is recorded does not change, so it is not asked for again. */
export function useRequest(rid: number | null): Resource<RequestAnswer> {
	return useJson<RequestAnswer>(rid === null ? null : { path: `requests/${rid}`, windowed: false, filtered: false });
}

/** The window that shows a request with some room around it. */
export function windowAround(answer: RequestAnswer): { kind: "range"; from: number; to: number } {
	const t = Number(answer.row["ts_ns"] ?? 0);
	const dur = Math.max(Number(answer.row["dur_ns"] ?? 0), 200);
	return { kind: "range", from: Math.max(0, t - dur), to: t + 2 * dur };
}
