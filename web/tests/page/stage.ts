// What a file of tests in a browser stands on: sessions that were recorded for it, their server, a browser, and for
// each test a tab in which nothing may go wrong that nobody sees.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect } from "vitest";
import {
	folder,
	openTab,
	record,
	remove,
	type Server,
	serve,
	settled,
	startBrowser,
	type Tab,
	whyNot,
} from "./harness.ts";

export const HOSTILE = "<img src=x onerror=alert(1)>";

/** Where the sessions lie. */
export let dir: string;
export let server: Server;
export let browser: Browser;
/** Of the test that runs. */
export let tab: Tab;

/** All text of the page, as it is read. */
export const text = () => tab.page.locator("body").innerText();

/** A session to record: name, shell script, options of the recording. */
export type Recorded = readonly [name: string, script: string, options?: readonly string[]];

/** Opens a saved page as a file: nothing may ask anything of anybody. */
export async function openSaved(path: string, look: (page: Page) => Promise<void>) {
	const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, offline: true });
	const page = await context.newPage();
	const faults: string[] = [];
	page.on("pageerror", (error) => faults.push(error.message));
	page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
	page.on("request", (request) => {
		if (!/^(file|data|blob):/.test(request.url())) faults.push(request.url());
	});
	await page.goto(`file://${path}`);
	await settled(page);
	await look(page);
	await context.close();
	expect(faults).toEqual([]);
}

/** Tests over sessions; skipped, and said so, where they cannot run. */
export function onStage(what: string, sessions: readonly Recorded[], tests: () => void): void {
	const reason = whyNot();
	if (reason !== null) process.stdout.write(`SKIPPED: tests of ${what} in a browser: ${reason}\n`);
	describe.skipIf(reason !== null)(what, () => {
		beforeAll(async () => {
			dir = folder();
			for (const [name, script, options] of sessions) record(dir, name, script, options);
			server = await serve(dir);
			browser = await startBrowser();
		});
		afterAll(async () => {
			await browser?.close();
			await server?.stop();
			if (dir) remove(dir);
		});
		beforeEach(async () => {
			tab = await openTab(browser, server);
			return async () => {
				const { faults, strangers } = tab;
				await tab.close();
				expect(faults).toEqual([]);
				expect(strangers).toEqual([]);
			};
		});
		tests();
	});
}
