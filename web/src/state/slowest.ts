// From sums to the call that dominates them.

import { useRef } from "react";
import { columns, selectionText, sessionPath } from "../api/session";
import type { Filter } from "../api/types";
import { mergeFilters } from "../lib/filters";
import type { Span } from "../lib/scale";
import { client } from "./server";
import { resolveWindow, useSession } from "./session";
import { store } from "./store";

/** Opens the longest call that passes the page's filter and another one, within the window or a part of it. */
export function useSlowest(): (filter?: Filter, span?: Span) => void {
	const session = useSession();
	const asked = useRef(0);
	return (filter = {}, span) => {
		const page = store.get();
		const selection = {
			span: span ?? (page.window.kind === "all" ? null : resolveWindow(page.window, session.bounds)),
			filter: mergeFilters(page.filter, filter),
		};
		const path = sessionPath(
			session.id,
			`/events${selectionText(selection, { sort: "-dur_ns", limit: 1, columns: "rid,dur_ns" })}`,
		);
		asked.current += 1;
		const own = asked.current;
		columns(client, path).then(
			(answer) => {
				const rid = answer.f64("rid")[0];
				// Another click came meanwhile, or the reader went elsewhere.
				if (own !== asked.current || rid === undefined || store.get().session !== session.id) return;
				store.go({ view: "request", rid });
			},
			() => {},
		);
	};
}
