// How fast the page is on a session, in headless Chromium:
//
//     [MINUTES=10] ../.deps/node tests/page/speed.ts SESSIONS SESSION
//
// Page weight, the time to the first view, frame times while the timeline is zoomed and moved, and the tab's memory.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, CDPSession } from "playwright-core";
import { FATHOM, open, openTab, serve, startBrowser, type Tab } from "./harness.ts";

interface Frames {
	/** Milliseconds between frames, in order of size. */
	times: number[];
	/** Milliseconds that the main thread worked for a frame. */
	work: number;
}

/** Frames while a key is held. */
async function frames(tab: Tab, key: string, ms: number): Promise<Frames> {
	await tab.page.evaluate(() => {
		const seen: number[] = [];
		const own = window as unknown as { seen: number[]; watching: boolean };
		own.seen = seen;
		own.watching = true;
		const turn = (now: number) => {
			seen.push(now);
			if (own.watching) requestAnimationFrame(turn);
		};
		requestAnimationFrame(turn);
	});
	const cdp = await tab.page.context().newCDPSession(tab.page);
	await cdp.send("Performance.enable");
	const before = await worked(cdp);
	await tab.page.keyboard.down(key);
	await tab.page.waitForTimeout(ms);
	await tab.page.keyboard.up(key);
	const after = await worked(cdp);
	await cdp.detach();
	const seen = await tab.page.evaluate(() => {
		const own = window as unknown as { seen: number[]; watching: boolean };
		own.watching = false;
		return own.seen;
	});
	const times = seen.slice(1).map((t, i) => t - (seen[i] ?? t));
	return { times: times.sort((a, b) => a - b), work: ((after - before) * 1000) / Math.max(1, times.length) };
}

/** Seconds that the main thread has worked. */
async function worked(cdp: CDPSession): Promise<number> {
	const { metrics } = await cdp.send("Performance.getMetrics");
	return metrics.find((m) => m.name === "TaskDuration")?.value ?? 0;
}

/** Resident memory of the largest process that shows pages, MiB. */
async function memory(browser: Browser): Promise<number> {
	const cdp = await browser.newBrowserCDPSession();
	const { processInfo } = await cdp.send("SystemInfo.getProcessInfo");
	await cdp.detach();
	const sizes = processInfo
		.filter((process) => process.type === "renderer")
		.map((process) => /VmRSS:\s*(\d+) kB/.exec(readFileSync(`/proc/${process.id}/status`, "utf8"))?.[1])
		.map((kib) => Number(kib ?? 0) / 1024);
	return Math.max(0, ...sizes);
}

/** Looks around in all views, as a reader does, for so long. */
async function browse(tab: Tab, minutes: number): Promise<void> {
	const end = Date.now() + minutes * 60_000;
	for (let turn = 0; Date.now() < end; turn += 1) {
		await tab.page.keyboard.press("Escape");
		await tab.page.keyboard.press(["2", "1", "2", "4"][turn % 4] ?? "2");
		await tab.page.waitForTimeout(700);
		await tab.page.mouse.move(300 + ((turn * 137) % 700), 250 + ((turn * 31) % 200));
		for (const key of ["w", "d", "s", "a", "w", "s"]) {
			await tab.page.keyboard.down(key);
			await tab.page.waitForTimeout(500);
			await tab.page.keyboard.up(key);
		}
		if (turn % 3 === 2) await tab.page.keyboard.press("0");
		await tab.page.waitForTimeout(500);
	}
}

function at(sorted: readonly number[], share: number): string {
	return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(1);
}

function say(text: string): void {
	process.stdout.write(`${text}\n`);
}

async function main([sessions, session]: readonly string[]): Promise<void> {
	if (!sessions || !session) throw new Error("usage: speed.ts SESSIONS SESSION");
	say(`${FATHOM}, ${join(sessions, session)}`);
	const server = await serve(sessions);
	const browser = await startBrowser();

	// The first view: from the address to plots and lists, with nothing in the browser's cache. The second time the
	// server has the session open.
	for (const turn of ["cold", "warm"]) {
		const tab = await openTab(browser, server);
		let weight = 0;
		tab.page.on("response", async (response) => {
			if (response.url().includes("/api/")) return;
			const sizes = await response.request().sizes();
			weight += sizes.responseBodySize;
		});
		const begun = Date.now();
		await tab.page.goto(`${server.origin}/?s=${encodeURIComponent(session)}#token=${server.token}`);
		await tab.page.waitForSelector(".u-over");
		const plots = Date.now() - begun;
		// Findings come later: all calls are read for them.
		await tab.page.waitForSelector(".top-thread tbody tr");
		say(
			`overview, ${turn}: plots after ${plots} ms, lists after ${Date.now() - begun} ms; page ${(weight / 1024).toFixed(0)} KiB compressed`,
		);
		await tab.close();
	}

	for (const width of [1280, 2560]) {
		const tab = await openTab(browser, server, { width, height: width === 1280 ? 800 : 1440 });
		const begun = Date.now();
		await open(tab, server, { s: session, view: "timeline" });
		say(`timeline at ${width}: there after ${Date.now() - begun} ms`);
		await tab.page.waitForTimeout(1500);
		await tab.page.mouse.move(width / 2, 300);
		for (const [key, what, ms] of [
			["w", "zooming in", 4000],
			["d", "moving", 3000],
			["a", "moving back", 3000],
			["s", "zooming out", 4000],
		] as const) {
			const { times, work } = await frames(tab, key, ms);
			say(
				`  ${what}: ${times.length} frames, median ${at(times, 0.5)} ms, p95 ${at(times, 0.95)}, longest ${at(times, 1)}; ` +
					`main thread ${work.toFixed(1)} ms a frame`,
			);
		}
		await tab.close();
	}

	const minutes = Number(process.env["MINUTES"] ?? 1);
	const tab = await openTab(browser, server);
	await open(tab, server, { s: session, view: "timeline" });
	await browse(tab, minutes);
	say(`after ${minutes} min of looking around: the tab has ${(await memory(browser)).toFixed(0)} MiB`);
	await tab.close();
	await browser.close();
	await server.stop();
}

await main(process.argv.slice(2));
