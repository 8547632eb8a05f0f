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
		about: "Where the time went, and why; rates and latency",
		scope: "session",
		load: () => import("./overview"),
	},
	{
		id: "flame",
		title: "Flame",
		about: "Time in calls by process, file, call, layer, and who was ahead on the device",
		scope: "session",
		load: () => import("./flame"),
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
	{
		id: "file",
		title: "File",
		about: "Where in a file was read and written, and when",
		scope: "session",
		full: true,
		load: () => import("./file"),
	},
	{
		id: "threads",
		title: "Threads",
		about: "Calls over time by thread name, and the latency above",
		scope: "session",
		load: () => import("./threads"),
	},
	{
		id: "blame",
		title: "Blame",
		about: "Who held whom up: on devices, on CPUs, at locks",
		scope: "session",
		load: () => import("./blame"),
	},
	{
		id: "layers",
		title: "Layers",
		about: "Where time goes below the calls, over time and for each request",
		scope: "session",
		full: true,
		load: () => import("./layers"),
	},
	{
		id: "devices",
		title: "Devices",
		about: "Queues, latency and users of devices; the page cache",
		scope: "session",
		load: () => import("./devices"),
	},
	{
		id: "sql",
		title: "SQL",
		about: "Query this session",
		needs: "query",
		scope: "session",
		full: true,
		load: () => import("./sql"),
	},
	{
		id: "panels",
		title: "Panels",
		about: "Your own plots and tables, made of queries",
		needs: "query",
		scope: "session",
		load: () => import("./panels"),
	},
	{
		id: "spans",
		title: "Spans",
		about: "Requests of the application: how long, how much of it I/O, which calls",
		scope: "session",
		// The last one, so that no other tab moves when the session is known.
		table: "spans",
		load: () => import("./spans"),
	},
	{
		id: "compare",
		title: "Compare",
		about: "Two sessions side by side",
		scope: "all",
		load: () => import("./compare"),
	},
];

export function viewOf(id: string): View | undefined {
	return VIEWS.find((view) => view.id === id);
}
