// Which errors are failures: the server says it of each error that it counts, so that there is one rule for all.

import type { Columns } from "../api/arrow";
import { columns, selectionText, sessionPath } from "../api/session";
import { useResource } from "./resource";
import { client } from "./server";
import { stripPixels, useLoad, useSession } from "./session";

/** The errors of a running recording are read again this often. */
const AGAIN_NS = 10e9;

type ErrorColumns = Pick<Columns, "rows" | "texts" | "flags">;

/** Calls with their errors that are failures. */
export function failuresOf(errors: ErrorColumns): ReadonlySet<string> {
	const [calls, names, failed] = [errors.texts("syscall"), errors.texts("errno"), errors.flags("failed")];
	const found = new Set<string>();
	for (let i = 0; i < errors.rows; i += 1) if (failed[i]) found.add(`${calls[i]} ${names[i]}`);
	return found;
}

/** Whether an error of a call is a failure; one that answers a question, such as ENOENT of a look-up, is not. */
export function useFailures(): (syscall: string | null, errno: string | null) => boolean {
	const session = useSession();
	const path = sessionPath(session.id, `/errors${selectionText({ pixels: stripPixels() })}`);
	const turn = session.live ? Math.floor(session.bounds.to / AGAIN_NS) : -1;
	const load = useLoad(path, (signal) => columns(client, path, signal));
	const { data } = useResource(path, load, turn);
	const found = data ? failuresOf(data) : null;
	return (syscall, errno) => found?.has(`${syscall} ${errno}`) ?? false;
}
