// Pictures of every view, of real sessions, in dark and light, at the narrowest and the widest that the page is made
// for:
//
//     ../.deps/node tests/page/pictures.ts SESSIONS PICTURES [SESSION [VIEW...]]

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ask, type Look, open, openTab, type Server, serve, settled, startBrowser, type Tab } from "./harness.ts";

const LOOKS: readonly (Look & { name: string })[] = [
	{ name: "dark-1280", width: 1280, height: 800, theme: "dark" },
	{ name: "light-1280", width: 1280, height: 800, theme: "light" },
	{ name: "dark-2560", width: 2560, height: 1440, theme: "dark" },
	{ name: "light-2560", width: 2560, height: 1440, theme: "light" },
];

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

/** The call that took the longest of those that went through the layers. */
async function slowest(server: Server, session: string): Promise<Slow> {
	const { decode } = await import("./columns.ts");
	const query = `sort=-dur_ns&limit=1&columns=rid,ts_ns,dur_ns&f=${encodeURIComponent('{"layer":["block"]}')}`;
	let answer = await ask(server, `/sessions/${session}/events?${query}`);
	let columns = decode(new Uint8Array(await answer.arrayBuffer()));
	if (columns.rows === 0) {
		answer = await ask(server, `/sessions/${session}/events?sort=-dur_ns&limit=1&columns=rid,ts_ns,dur_ns`);
		columns = decode(new Uint8Array(await answer.arrayBuffer()));
	}
	return { rid: columns.first("rid"), t: columns.first("ts_ns"), dur: columns.first("dur_ns") };
}

const at = (view: string) => async (_: Server, s: string) => ({ s, view });

const SHOTS: readonly Shot[] = [
	{ name: "sessions", state: async () => ({ view: "sessions" }) },
	{ name: "overview", state: at("overview") },
	{
		name: "overview-filter",
		state: async (_, s) => ({ s, view: "overview", f: JSON.stringify({ class: ["data"], not_comm: ["sh"] }) }),
		prepare: async ({ page }) => {
			await page.keyboard.press("/");
			await page.keyboard.type("re");
			await page.waitForTimeout(600);
		},
	},
	{ name: "timeline", state: at("timeline") },
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
	{ name: "request", state: async (server, s) => ({ s, view: "request", rid: (await slowest(server, s)).rid }) },
	{ name: "table", state: at("table") },
	{
		name: "table-sorted",
		state: async (server, s) => ({ s, view: "table", sort: "-dur_ns", rid: (await slowest(server, s)).rid }),
	},
	{
		name: "help",
		state: at("timeline"),
		prepare: async ({ page }) => {
			await page.keyboard.press("?");
		},
	},
];

async function main([sessions, pictures, session, ...names]: readonly string[]): Promise<void> {
	if (!sessions || !pictures) throw new Error("usage: pictures.ts SESSIONS PICTURES [SESSION [VIEW...]]");
	mkdirSync(pictures, { recursive: true });
	const server = await serve(sessions);
	const browser = await startBrowser();
	const list = (await (await ask(server, "/sessions")).json()) as { id: string }[];
	const shown = session ?? list[0]?.id ?? "";
	for (const look of LOOKS.filter((l) => !process.env["LOOK"] || l.name === process.env["LOOK"])) {
		for (const shot of SHOTS.filter((s) => names.length === 0 || names.includes(s.name))) {
			const tab = await openTab(browser, server, look);
			await open(tab, server, await shot.state(server, shown));
			await shot.prepare?.(tab);
			await settled(tab.page);
			await tab.page.waitForTimeout(500);
			await tab.page.screenshot({ path: join(pictures, `${shot.name}-${look.name}.png`) });
			for (const fault of tab.faults) process.stderr.write(`${shot.name}: ${fault}\n`);
			await tab.close();
		}
	}
	await browser.close();
	await server.stop();
}

await main(process.argv.slice(2));
