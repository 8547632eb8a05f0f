// Pictures of every view, of real sessions, in dark and light, at the narrowest and the widest that the page is made
// for:
//
//     ../.deps/node tests/page/pictures.ts SESSIONS PICTURES [SESSION [VIEW...]]
//
// and the pictures in docs/pictures, of the session that examples/slow-requests/run.sh makes:
//
//     ../.deps/node tests/page/pictures.ts --docs SESSIONS ../docs/pictures server.fathom

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { VIEWS } from "../../src/views/index.ts";
import {
	ask,
	type Look,
	open,
	opened,
	openTab,
	type Server,
	serve,
	settled,
	startBrowser,
	type Tab,
} from "./harness.ts";

const LOOKS: readonly (Look & { name: string })[] = [
	{ name: "dark-1280", width: 1280, height: 800, theme: "dark" },
	{ name: "light-1280", width: 1280, height: 800, theme: "light" },
	{ name: "dark-2560", width: 2560, height: 1440, theme: "dark" },
	{ name: "light-2560", width: 2560, height: 1440, theme: "light" },
];

/** The pictures that documents show: the names of their files, by the names here. */
const OF_DOCS: Readonly<Record<string, string>> = {
	overview: "overview",
	request: "request",
	"timeline-layers": "timeline",
	"file-latency": "file",
	layers: "layers",
};

/** What a picture shows: an address, and what is done there before it is taken. */
interface Shot {
	name: string;
	state: (server: Server, session: string) => Promise<Record<string, string | number>>;
	prepare?: (tab: Tab) => Promise<void>;
}

interface Slow {
	rid: number;
	t: number;
	dur: number;
}

/** The call that waited longest for a device; where none did, the longest. */
async function slowest(server: Server, session: string): Promise<Slow> {
	const { decode } = await import("./columns.ts");
	const about = (await (await ask(server, `/sessions/${session}`)).json()) as { started_at_ns: number };
	const answer = await fetch(`${server.origin}/api/sessions/${session}/sql`, {
		method: "POST",
		headers: { Authorization: `Bearer ${server.token}`, "Content-Type": "application/json" },
		body: JSON.stringify({ sql: WAITED }),
	});
	if (!answer.ok) throw new Error(await answer.text());
	const columns = decode(new Uint8Array(await answer.arrayBuffer()));
	return { rid: columns.first("rid"), t: columns.first("ts_ns") - about.started_at_ns, dur: columns.first("dur_ns") };
}

const WAITED = `SELECT rid, ts_ns, dur_ns FROM syscalls
LEFT JOIN (SELECT rid, sum(self_ns) AS waited FROM slices WHERE layer = 'block' GROUP BY rid) USING (rid)
ORDER BY waited DESC NULLS LAST, dur_ns DESC LIMIT 1`;

/** A part of the session in its middle. */
async function middle(server: Server, session: string, share: number): Promise<{ from: number; to: number }> {
	const about = (await (await ask(server, `/sessions/${session}`)).json()) as { span: { from: number; to: number } };
	const center = (about.span.from + about.span.to) / 2;
	const half = ((about.span.to - about.span.from) * share) / 2;
	return { from: Math.round(center - half), to: Math.round(center + half) };
}

const SLOWEST = `SELECT rid, dur_ns, syscall, comm, path, bytes
FROM syscalls
WHERE ts_ns BETWEEN $from AND $to AND $filter
ORDER BY dur_ns DESC
LIMIT 100`;

const OVER_TIME = `SELECT $from + (ts_ns - $from) // $bucket * $bucket AS ts_ns,
  syscall, count(*) AS calls
FROM syscalls
WHERE ts_ns BETWEEN $from AND $to AND $filter
GROUP BY ALL ORDER BY ALL`;

const P99 = `SELECT $from + (ts_ns - $from) // ($bucket * 5) * ($bucket * 5) AS ts_ns,
  comm, quantile_disc(dur_ns, 0.99) AS p99_ns
FROM syscalls
WHERE ts_ns BETWEEN $from AND $to AND $filter
GROUP BY ALL ORDER BY ALL`;

const at = (view: string) => async (_: Server, s: string) => ({ s, view });

/** Those of views of which more is to be seen than as they open. */
const PREPARED: readonly Shot[] = [
	{
		name: "overview-filter",
		state: async (_, s) => ({ s, view: "overview", f: JSON.stringify({ class: ["data"], not_comm: ["sh"] }) }),
		prepare: async ({ page }) => {
			await page.keyboard.press("/");
			await page.keyboard.type("re");
			await page.waitForTimeout(600);
		},
	},
	{
		name: "timeline-calls",
		state: async (server, s) => {
			const { t, dur } = await slowest(server, s);
			return { s, view: "timeline", from: Math.max(0, t - 3 * dur), to: t + 4 * dur };
		},
		prepare: async ({ page }) => {
			await page.mouse.move(700, 190);
			await page.waitForTimeout(300);
		},
	},
	{
		name: "timeline-request",
		state: async (server, s) => {
			const { rid, t, dur } = await slowest(server, s);
			return { s, view: "timeline", from: Math.max(0, t - dur), to: t + 2 * dur, rid };
		},
	},
	{
		name: "timeline-layers",
		state: async (server, s) => {
			const { t, dur } = await slowest(server, s);
			return { s, view: "timeline", layers: 1, from: Math.max(0, t - 3 * dur), to: t + 4 * dur };
		},
		prepare: async ({ page }) => {
			await page.waitForTimeout(800);
		},
	},
	{ name: "timeline-layers-sums", state: async (_, s) => ({ s, view: "timeline", layers: 1 }) },
	{ name: "request", state: async (server, s) => ({ s, view: "request", rid: (await slowest(server, s)).rid }) },
	{
		name: "table-sorted",
		state: async (server, s) => ({ s, view: "table", sort: "-dur_ns", rid: (await slowest(server, s)).rid }),
	},
	{
		name: "file-latency",
		state: async (server, s) => ({ s, view: "file", color: "latency", ...(await middle(server, s, 0.06)) }),
		prepare: async ({ page }) => {
			await page.keyboard.press("]");
			await page.waitForTimeout(600);
		},
	},
	{ name: "threads-lanes", state: async (_, s) => ({ s, view: "threads", as: "lanes" }) },
	{
		name: "layers-request",
		state: async (server, s) => ({
			s,
			view: "layers",
			order: "dur",
			scale: "all",
			f: '{"layer":["device"]}',
			rid: (await slowest(server, s)).rid,
		}),
	},
	{ name: "sql", state: async (_, s) => ({ s, view: "sql", sql: SLOWEST, name: "The slowest calls" }) },
	{ name: "sql-plot", state: async (_, s) => ({ s, view: "sql", sql: OVER_TIME, form: "stack" }) },
	{
		name: "sql-error",
		state: async (_, s) => ({ s, view: "sql", sql: "SELECT rid,\n  path_of(file)\nFROM syscalls" }),
		prepare: async ({ page }) => {
			await page.locator(".sql-fold").first().click();
		},
	},
	{
		name: "panels",
		state: at("panels"),
		prepare: async ({ page }) => {
			const plot = { x: "", y: [], series: "", log: false };
			const queries = [
				{
					id: "1",
					name: "Calls by syscall",
					sql: OVER_TIME,
					plot: { ...plot, form: "stack" },
					panel: true,
					wide: true,
				},
				{
					id: "2",
					name: "The slowest calls",
					sql: SLOWEST,
					plot: { ...plot, form: "table" },
					panel: true,
					wide: false,
				},
				{
					id: "3",
					name: "p99 by thread",
					sql: P99,
					plot: { ...plot, form: "line", log: true },
					panel: true,
					wide: false,
				},
			];
			await page.evaluate((text) => window.localStorage.setItem("fathom.queries", text), JSON.stringify(queries));
			await page.reload();
			await page.waitForTimeout(1000);
		},
	},
	{
		name: "compare",
		state: async (server, s) => {
			const list = (await (await ask(server, "/sessions")).json()) as { id: string }[];
			return { view: "compare", before: s, after: list.find((other) => other.id !== s)?.id ?? s };
		},
	},
	{
		name: "help",
		state: at("timeline"),
		prepare: async ({ page }) => {
			await page.keyboard.press("?");
		},
	},
];

const SHOTS: readonly Shot[] = [
	...VIEWS.filter(({ id }) => !PREPARED.some(({ name }) => name === id)).map((view) => ({
		name: view.id,
		state: async (_: Server, s: string) => opened(view, s),
	})),
	...PREPARED,
];

async function main(args: readonly string[]): Promise<void> {
	const docs = args[0] === "--docs";
	const [sessions, pictures, session, ...chosen] = docs ? args.slice(1) : args;
	if (!sessions || !pictures) throw new Error("usage: pictures.ts [--docs] SESSIONS PICTURES [SESSION [VIEW...]]");
	const names = docs && chosen.length === 0 ? Object.keys(OF_DOCS) : chosen;
	const look = docs ? LOOKS[0]?.name : process.env["LOOK"];
	mkdirSync(pictures, { recursive: true });
	const server = await serve(sessions);
	const browser = await startBrowser();
	const list = (await (await ask(server, "/sessions")).json()) as { id: string }[];
	const shown = session ?? list[0]?.id ?? "";
	for (const drawn of LOOKS.filter((l) => !look || l.name === look)) {
		for (const shot of SHOTS.filter((s) => names.length === 0 || names.includes(s.name))) {
			const tab = await openTab(browser, server, drawn);
			await open(tab, server, await shot.state(server, shown));
			await shot.prepare?.(tab);
			await settled(tab.page);
			await tab.page.waitForTimeout(500);
			await tab.page.screenshot({
				path: join(pictures, `${docs ? OF_DOCS[shot.name] : `${shot.name}-${drawn.name}`}.png`),
			});
			for (const fault of tab.faults) process.stderr.write(`${shot.name}: ${fault}\n`);
			await tab.close();
		}
	}
	await browser.close();
	await server.stop();
}

await main(process.argv.slice(2));
