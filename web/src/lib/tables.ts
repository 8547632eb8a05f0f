import type { SessionDescription } from "../api/types";

/** Whether a table of a session has rows. */
export function hasRows({ tables }: Pick<SessionDescription, "tables">, name: string): boolean {
	return tables.some((table) => table.name === name && table.rows > 0);
}
