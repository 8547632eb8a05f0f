import type { SessionSummary } from "../../api/types";

/** Ids of sessions in the order in which they were recorded; of those recorded at once, as they are. */
export function inOrder(
	ids: readonly string[],
	sessions: readonly Pick<SessionSummary, "id" | "started_unix_ms">[],
): string[] {
	const began = (id: string) => sessions.find((s) => s.id === id)?.started_unix_ms ?? 0;
	return [...ids].sort((a, b) => began(a) - began(b));
}
