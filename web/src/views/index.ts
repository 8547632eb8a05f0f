// All views, in the order of their tabs. A view is registered here and nowhere else.

import type { View } from "./view";

export const VIEWS: readonly View[] = [
	{
		id: "sessions",
		title: "Sessions",
		about: "All sessions of the directory",
		scope: "all",
		load: () => import("./sessions"),
	},
	{
		id: "overview",
		title: "Overview",
		about: "What happened, how much, how fast",
		scope: "session",
		load: () => import("./overview"),
	},
	{
		id: "timeline",
		title: "Timeline",
		about: "Every call, a lane per thread, from hours to nanoseconds",
		scope: "session",
		full: true,
		load: () => import("./timeline"),
	},
	{
		id: "request",
		title: "Request",
		about: "Where the time of one call went",
		scope: "session",
		load: () => import("./request"),
	},
	{
		id: "table",
		title: "Table",
		about: "The calls themselves, a row each",
		scope: "session",
		full: true,
		load: () => import("./table"),
	},
];

export function viewOf(id: string): View | undefined {
	return VIEWS.find((view) => view.id === id);
}
