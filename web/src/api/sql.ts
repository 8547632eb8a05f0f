// SQL of the reader's own.

import { Columns } from "./arrow";
import type { Client } from "./client";
import { sessionPath } from "./session";
import type { SqlRequest } from "./types";

/** Runs one statement; stops on the server when the signal says so. */
export async function runSql(client: Client, id: string, request: SqlRequest, signal: AbortSignal): Promise<Columns> {
	const body = JSON.stringify(request);
	const headers = { "Content-Type": "application/json" };
	return Columns.read(await client.bytes(sessionPath(id, "/sql"), { method: "POST", body, headers, signal }));
}
