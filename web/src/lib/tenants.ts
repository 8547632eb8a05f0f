// Filters by tenant as SQL, as the server has them: views tenants and volume_files tell whose calls are which.

import type { TenantMember } from "./filters";
import { literal } from "./quote";

/** Digits of a container's id that stand for the id. */
const SHORT_ID = 12;

/** Whether a column is a text, in which `*` stands for anything. */
function like(column: string, text: string): string {
	if (!text.includes("*")) return `${column} = ${literal(text)}`;
	const pattern = text.replaceAll(/[%_\\]/g, "\\$&").replaceAll("*", "%");
	return `${column} LIKE ${literal(pattern)} ESCAPE '\\'`;
}

/** The part before the first slash, and the part behind it, in two columns. */
function pair(value: string, first: string, second: string): string | null {
	const at = value.indexOf("/");
	return at < 0 ? null : `(${like(first, value.slice(0, at))} AND ${like(second, value.slice(at + 1))})`;
}

/** Whether a row of the view is of a tenant. */
function isOf(member: TenantMember, value: string): string {
	switch (member) {
		case "cgroup": {
			const path = value.replace(/\/+$/, "");
			return `${like("cgroup", path)} OR ${like("cgroup", `${path}/*`)}`;
		}
		case "unit": {
			const name = /(\.(service|scope|slice)|\*)$/.test(value) ? value : `${value}.service`;
			return like("(cgroup || '/')", `*/${name}/*`);
		}
		case "pod":
			return pair(value, "namespace", "pod") ?? like("pod", value);
		case "namespace":
			return like("namespace", value);
		case "container": {
			const id = value.length >= SHORT_ID && /^[0-9a-f]+$/i.test(value);
			const short = id ? ` OR ${like("container_id", `${value}*`)}` : "";
			return `${like("container_id", value)} OR ${like("container", value)}${short}`;
		}
		case "volume": {
			const claim = pair(value, "namespace", "claim");
			const volume = pair(value, "plugin", "volume");
			return claim && volume ? `${claim} OR ${volume}` : `${like("claim", value)} OR ${like("volume", value)}`;
		}
	}
}

/** The calls of any of some tenants as a condition on rows of table syscalls; `not`: all others. */
export function tenantCondition(member: TenantMember, values: readonly string[], not: boolean): string {
	const any = values.map((value) => isOf(member, value)).join(" OR ");
	const is =
		member === "volume"
			? `file_id IN (SELECT file_id FROM volume_files WHERE ${any})`
			: `pid IN (SELECT pid FROM tenants WHERE tid IS NULL AND (${any})) OR EXISTS (SELECT 1 FROM (` +
				`SELECT pid AS of_pid, tid AS of_tid, from_ns, until_ns FROM tenants WHERE tid IS NOT NULL AND (${any})) ` +
				"WHERE of_pid = pid AND of_tid = tid AND ts_ns >= coalesce(from_ns, ts_ns) " +
				"AND coalesce(ts_ns < until_ns, true))";
	return not ? `NOT coalesce(${is}, false)` : `coalesce(${is}, false)`;
}
