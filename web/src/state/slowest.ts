// From sums to the call that dominates them.

import { useRef } from "react";
import { columns, selectionText, sessionPath } from "../api/session";
import type { Filter } from "../api/types";
import { mergeFilters } from "../lib/filters";
import type { Span } from "../lib/scale";
import { client } from "./server";
import { resolveWindow, useSession } from "./session";
import { store } from "./store";

/** Opens the call that a thread began last before a time. */
export function useCallAt(): (tid: number, t: number) => void {
	const open = useFirst("-ts_ns");
	return (tid, t) => open({ tid: [tid] }, { from: 0, to: Math.max(1, Math.floor(t)) }, {});
}

/** Opens the longest call that passes the page's filter and another one, within the window or a part of it. */
export function useSlowest(): (filter?: Filter, span?: Span) => void {
	const open = useFirst("-dur_ns");
	return (filter = {}, span = undefined) => open(filter, span, { view: "request" });
}

/** Opens the first call in an order: in a view, or in the one that is shown. */
function useFirst(sort: string): (filter: Filter, span: Span | undefined, where: { view?: string }) => void {
	const session = useSession();
	const asked = useRef(0);
	return (filter, span, where) => {
		const page = store.get();
		const selection = {
			span: span ?? (page.window.kind === "all" ? null : resolveWindow(page.window, session.bounds)),
			filter: mergeFilters(page.filter, filter),
		};
		const path = sessionPath(
			session.id,
			`/events${selectionText(selection, { sort, limit: 1, columns: "rid,dur_ns" })}`,
		);
		asked.current += 1;
		const own = asked.current;
		columns(client, path).then(
			(answer) => {
				const rid = answer.f64("rid")[0];
				// Another click came meanwhile, or the reader went elsewhere.
				if (own !== asked.current || rid === undefined || store.get().session !== session.id) return;
				store.go({ ...where, rid });
			},
			() => {},
		);
	};
}
