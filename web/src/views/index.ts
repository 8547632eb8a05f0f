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
];

export function viewOf(id: string): View | undefined {
	return VIEWS.find((view) => view.id === id);
}
