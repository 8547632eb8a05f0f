import { filterText } from "../../api/session";
// A statement whose placeholders are filled in from the page, and its result: asked again when window, filter or
// recording move on.

import type { Columns } from "../../api/arrow";
import { runSql } from "../../api/sql";
import { type Expanded, expand } from "../../lib/sql";
import { type Resource, useResource } from "../../state/resource";
import { client } from "../../state/server";
import { useSession, useShown } from "../../state/session";
import { usePage } from "../../state/store";

const BUCKETS = 300;
/** A running recording tells of new rows up to five times a second: SQL need not run that often. */
const REVISIONS = 5;

export interface SqlResult extends Resource<Columns> {
	expanded: Expanded | null;
}

/** The result of a statement; null asks for nothing. `turn` asks once more. */
export function useSql(sql: string | null, maxRows: number, turn = 0): SqlResult {
	const page = usePage();
	const session = useSession();
	const { span, following } = useShown();
	const expanded =
		sql === null
			? null
			: expand(sql, { start: session.about.started_at_ns, span, filter: page.filter, buckets: BUCKETS });
	const text = expanded?.text ?? "";
	const window = page.window.kind === "last" ? `last ${page.window.span}` : page.window.kind;
	// A window that moves with the recording is one question, however often it moves.
	const key =
		expanded === null
			? null
			: following && expanded.follows
				? `${session.id} ${turn} ${window} ${filterText(page.filter)} ${sql}`
				: `${session.id} ${turn} ${text}`;
	const revision = session.live ? Math.floor(session.revision / REVISIONS) : -1;
	const result = useResource(
		key,
		(signal) => runSql(client, session.id, { sql: text, max_rows: maxRows }, signal),
		revision,
	);
	return { ...result, expanded };
}
