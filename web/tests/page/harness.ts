// What the tests in a browser stand on: the program, sessions that it records, its server, and the distribution's
// Chromium.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import type { View } from "../../src/views/view.ts";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");

/** A part of the page that has moved, as browsers tell. */
interface Shift {
	value: number;
	hadRecentInput: boolean;
	sources: { node: Node | null; previousRect: DOMRectReadOnly; currentRect: DOMRectReadOnly }[];
}

/** The program that is tested. */
export const FATHOM = process.env["FATHOM_BIN"] ?? join(ROOT, "target/release/fathom");

function onPath(names: readonly string[]): string | null {
	for (const name of names) {
		for (const dir of (process.env["PATH"] ?? "").split(":")) {
			const path = join(dir, name);
			try {
				accessSync(path, constants.X_OK);
				return path;
			} catch {
				// The next one.
			}
		}
	}
	return null;
}

const CHROMIUM = process.env["FATHOM_CHROMIUM"] ?? onPath(["chromium", "chromium-browser", "google-chrome"]);

/** Why the tests cannot run here; null when they can. */
export function whyNot(): string | null {
	if (CHROMIUM === null) return "no Chromium: install package chromium";
	if (!existsSync(FATHOM)) return `no program at ${FATHOM}: ./do build`;
	if (process.getuid?.() !== 0) return "recording the sessions that are shown needs root";
	return null;
}

/** A directory for sessions that is removed again. */
export function folder(): string {
	// Not in memory: what is recorded is I/O on a disk.
	const base = process.env["FATHOM_TEST_DIR"] ?? (existsSync("/var/tmp") ? "/var/tmp" : tmpdir());
	return mkdtempSync(join(base, "fathom-page-"));
}

export function remove(dir: string): void {
	rmSync(dir, { recursive: true, force: true });
}

/** Records a shell script in a directory of its own, as session `name`. */
export function record(dir: string, name: string, script: string, options: readonly string[] = []): void {
	const work = mkdtempSync(join(dir, ".work-"));
	execFileSync(FATHOM, ["record", ...options, "-o", join(dir, `${name}.fathom`), "--", "sh", "-c", script], {
		cwd: work,
		stdio: "ignore",
	});
	rmSync(work, { recursive: true, force: true });
}

/** Begins to record a shell script; the caller ends it. */
export function recording(dir: string, name: string, script: string): ChildProcess {
	return spawn(FATHOM, ["record", "-o", join(dir, `${name}.fathom`), "--", "sh", "-c", script], {
		cwd: dir,
		stdio: "ignore",
	});
}

/** Ends a process, which may have ended by itself. */
export async function end(child: ChildProcess): Promise<void> {
	child.kill("SIGTERM");
	await ended(child);
}

/** Waits until a process has ended. */
export async function ended(child: ChildProcess): Promise<void> {
	if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}

export interface Server {
	/** With the token in its fragment. */
	url: string;
	/** Without. */
	origin: string;
	port: number;
	token: string;
	pid: number;
	stop: () => Promise<void>;
}

/** Starts `fathom ui`; on a port that was used before, for a server that returns. */
export async function serve(dir: string, port = 0, options: readonly string[] = []): Promise<Server> {
	const child = spawn(FATHOM, ["ui", "--no-open", "--listen", `127.0.0.1:${port}`, ...options, dir], {
		stdio: ["ignore", "pipe", "inherit"],
	});
	const url = await new Promise<string>((done, fail) => {
		let text = "";
		child.stdout.on("data", (part: Buffer) => {
			text += part.toString();
			const line = /^(http:\/\/\S+)\n/m.exec(text);
			if (line?.[1]) done(line[1]);
		});
		child.on("exit", (status) => fail(new Error(`fathom ui ended with status ${status}`)));
	});
	const parsed = new URL(url);
	return {
		url,
		origin: parsed.origin,
		port: Number(parsed.port),
		token: new URLSearchParams(parsed.hash.slice(1)).get("token") ?? "",
		pid: child.pid ?? 0,
		stop: () => end(child),
	};
}

export async function startBrowser(): Promise<Browser> {
	return chromium.launch({
		executablePath: CHROMIUM ?? "",
		args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb", "--font-render-hinting=none"],
	});
}

/** A tab, and whatever went wrong in it that nobody should see. */
export interface Tab {
	page: Page;
	context: BrowserContext;
	/** Errors of scripts, of the security policy, and what a hostile name would have called. */
	faults: string[];
	/** Requests to anywhere but the server. */
	strangers: string[];
	close: () => Promise<void>;
}

export interface Look {
	width?: number;
	height?: number;
	theme?: "dark" | "light";
}

export async function openTab(browser: Browser, server: Server, look: Look = {}): Promise<Tab> {
	const context = await browser.newContext({
		viewport: { width: look.width ?? 1280, height: look.height ?? 800 },
		colorScheme: look.theme ?? "dark",
	});
	// A machine that is busy with other tests takes its time, most of all to save a session as a page.
	context.setDefaultTimeout(90_000);
	await context.addInitScript(() => {
		const told = window as unknown as { jumps: number; jumped: string[] };
		told.jumps = 0;
		told.jumped = [];
		new PerformanceObserver((list) => {
			// What follows a click or a key is meant.
			for (const entry of list.getEntries() as unknown as Shift[]) {
				if (entry.hadRecentInput) continue;
				told.jumps += entry.value;
				for (const { node, previousRect: from, currentRect: to } of entry.sources)
					told.jumped.push(
						`${(node as Element | null)?.className ?? node?.nodeName}: ${from.x},${from.y} to ${to.x},${to.y}`,
					);
			}
		}).observe({ type: "layout-shift", buffered: true });
	});
	const page = await context.newPage();
	const faults: string[] = [];
	const strangers: string[] = [];
	page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
	page.on("dialog", async (dialog) => {
		faults.push(`dialog: ${dialog.message()}`);
		await dialog.dismiss();
	});
	page.on("console", (message) => {
		if (/content security policy|refused to/i.test(message.text())) faults.push(message.text());
	});
	page.on("request", (request) => {
		if (!request.url().startsWith(server.origin) && !request.url().startsWith("blob:")) strangers.push(request.url());
	});
	return { page, context, faults, strangers, close: () => context.close() };
}

/** The state of a view as its tab opens it, of session `s` where it needs one. */
export function opened({ id, scope }: View, s: string): Record<string, string> {
	return scope === "session" ? { s, view: id } : { view: id };
}

/** Opens a state of the page by its address. */
export async function open(
	tab: Tab,
	server: Server,
	state: Readonly<Record<string, string | number>> = {},
): Promise<void> {
	const query = new URLSearchParams(Object.entries(state).map(([name, value]) => [name, String(value)]));
	await tab.page.goto(`${server.origin}/?${query}#token=${server.token}`);
	await settled(tab.page);
}

/** Waits until nothing is loading any more. */
export async function settled(page: Page): Promise<void> {
	await page.waitForFunction(
		() =>
			!document.querySelector('[aria-busy="true"], .progress.on') && document.querySelector("main > :not(h1)") !== null,
		undefined,
		{ timeout: 30_000 },
	);
}

/** What has moved while the page was loading, and from where to where. */
export function jumped(page: Page): Promise<string[]> {
	return page.evaluate(() => (window as unknown as { jumped: string[] }).jumped);
}

/** How much what was already there has moved while the page was loading, as browsers count it: 0 for not at all. */
export function jumps(page: Page): Promise<number> {
	return page.evaluate(() => (window as unknown as { jumps: number }).jumps);
}

/** Asks the server as the page does. */
export async function ask(server: Server, path: string, token = server.token): Promise<Response> {
	return fetch(`${server.origin}/api${path}`, { headers: { Authorization: `Bearer ${token}` } });
}
