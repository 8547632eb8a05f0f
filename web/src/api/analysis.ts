// What single views ask beyond calls: devices, comparisons, SQL.

import { Columns } from "./arrow";
import type { Client } from "./client";
import { sessionPath } from "./session";

/** A device that had requests in the window. */
export interface Device {
	name: string;
	requests: number;
	/** Of which a recorded call caused. */
	recorded: number;
	errors: number;
	bytes_read: number;
	bytes_written: number;
	/** From submission to the device's driver; null when that was not seen. */
	queue_p50_ns: number | null;
	queue_p99_ns: number | null;
	/** From the driver to completion. */
	device_p50_ns: number | null;
	device_p99_ns: number | null;
	device_max_ns: number | null;
	/** Requests that the device had when it got one, which counts. */
	mean_depth: number | null;
	max_depth: number | null;
	/** Who submitted them, most time in the device first. */
	who: { comm: string | null; requests: number; bytes: number; device_ns: number }[];
}

/** A table or a view that SQL can use. */
export interface Relation {
	name: string;
	/** Whether it is made of others. */
	view: boolean;
	/** What a row is. */
	doc: string;
	/** Null for a view. */
	rows: number | null;
	columns: { name: string; sql_type: string; nullable: boolean | null; doc: string }[];
}

/** Runs one statement; stops on the server when the signal says so. */
export async function runSql(
	client: Client,
	id: string,
	sql: string,
	maxRows: number,
	signal: AbortSignal,
): Promise<Columns> {
	const body = JSON.stringify({ sql, max_rows: maxRows });
	const headers = { "Content-Type": "application/json" };
	return Columns.from(await client.bytes(sessionPath(id, "/sql"), { method: "POST", body, headers, signal }));
}
