import type { ComponentType } from "react";

/** A view of the page: a folder below `views/` and a line in `views/index.ts`. */
export interface View {
	/** Its name in addresses. */
	id: string;
	title: string;
	/** What it answers, in a few words: tooltip of its tab. */
	about: string;
	/** `session`: of one session, with window and filter; `all`: of several. */
	scope: "session" | "all";
	/** Fills the page below the bars and scrolls by itself. */
	full?: boolean;
	/** Has a tab only in sessions in which this table has rows. */
	table?: string;
	/** The least role that it is for; `look` when it is not given. */
	needs?: "query" | "record";
	/** Has no tab: it is opened from others. */
	hidden?: boolean;
	/** Loads the component, when the view is first opened. */
	load: () => Promise<{ default: ComponentType }>;
}
