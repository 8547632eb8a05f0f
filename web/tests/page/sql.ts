// What SQL says of a session, for what the page must show.

import { tableFromIPC } from "apache-arrow";
import type { Server } from "./harness.ts";

export async function rowsOf(server: Server, id: string, statement: string): Promise<Record<string, unknown>[]> {
	const answer = await fetch(`${server.origin}/api/sessions/${id}/sql`, {
		method: "POST",
		headers: { Authorization: `Bearer ${server.token}`, "Content-Type": "application/json" },
		body: JSON.stringify({ sql: statement }),
	});
	if (!answer.ok) throw new Error(await answer.text());
	return tableFromIPC(new Uint8Array(await answer.arrayBuffer()))
		.toArray()
		.map((row) => row.toJSON());
}
