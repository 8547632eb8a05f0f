// What the benchmark of the page measures, and how: with what Chromium itself counts.

import { existsSync, readFileSync } from "node:fs";
import type { Browser, CDPSession } from "playwright-core";
import { ask, type Server, type Tab } from "./harness.ts";

const MIB = 1024 * 1024;

export interface Frames {
	/** Milliseconds between frames, in order of size. */
	times: number[];
	/** Milliseconds that the main thread worked for a frame. */
	work: number;
}

/** Frames while a key is held. */
export async function frames(tab: Tab, key: string, ms: number): Promise<Frames> {
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
	const before = await counter(cdp, "TaskDuration");
	await tab.page.keyboard.down(key);
	await tab.page.waitForTimeout(ms);
	await tab.page.keyboard.up(key);
	const after = await counter(cdp, "TaskDuration");
	await cdp.detach();
	const seen = await tab.page.evaluate(() => {
		const own = window as unknown as { seen: number[]; watching: boolean };
		own.watching = false;
		return own.seen;
	});
	const times = seen.slice(1).map((t, i) => t - (seen[i] ?? t));
	return { times: times.sort((a, b) => a - b), work: ((after - before) * 1000) / Math.max(1, times.length) };
}

/** One of the counters that Chromium keeps of a tab. */
async function counter(cdp: CDPSession, name: string): Promise<number> {
	const { metrics } = await cdp.send("Performance.getMetrics");
	return metrics.find((m) => m.name === name)?.value ?? 0;
}

/** Begins to count how much processor time the tab's main thread takes; what it returns tells, in milliseconds. */
export async function mainThread(tab: Tab): Promise<() => Promise<number>> {
	const cdp = await tab.page.context().newCDPSession(tab.page);
	await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
	const before = await counter(cdp, "TaskDuration");
	return async () => ((await counter(cdp, "TaskDuration")) - before) * 1000;
}

/** Waits until the browser has made what a new tab needs: for some seconds that takes as much as a page does. */
export async function atRest(browser: Browser): Promise<void> {
	const cdp = await browser.newBrowserCDPSession();
	const worked = async () => {
		const { processInfo } = await cdp.send("SystemInfo.getProcessInfo");
		return processInfo.reduce((all, { id }) => all + (existsSync(`/proc/${id}`) ? processorMs(id) : 0), 0);
	};
	let before = await worked();
	for (let turn = 0, quiet = 0; turn < 50 && quiet < 2; turn += 1) {
		await new Promise((done) => setTimeout(done, 200));
		const now = await worked();
		quiet = now - before <= 10 ? quiet + 1 : 0;
		before = now;
	}
	await cdp.detach();
}

/** Notes in each page of a tab when it first has something that `selector` selects. */
export async function watchFor(tab: Tab, selector: string): Promise<void> {
	await tab.page.addInitScript((wanted) => {
		const seen = window as unknown as Seen;
		const watch = new MutationObserver(() => {
			if (!document.querySelector(wanted)) return;
			watch.disconnect();
			seen.drawnMs = performance.now();
			requestAnimationFrame(() =>
				requestAnimationFrame((next) => {
					seen.nextFrameMs = next;
				}),
			);
		});
		watch.observe(document, { childList: true, subtree: true });
	}, selector);
}

interface Seen {
	/** When it was in the document, and when the frame after the one that showed it began. */
	drawnMs?: number;
	nextFrameMs?: number;
}

/**
 * When the browser showed the first frame with what was watched for, by its own clock: milliseconds since 1970. To wait for an
 * element from outside takes a tenth of a second more, in which the page already shows it.
 */
export async function shownAt(tab: Tab): Promise<number> {
	await tab.page.waitForFunction(() => (window as unknown as Seen).nextFrameMs !== undefined);
	return tab.page.evaluate(() => {
		const { drawnMs = 0, nextFrameMs = 0 } = window as unknown as Seen;
		const first = performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0;
		return performance.timeOrigin + (first >= drawnMs ? first : nextFrameMs);
	});
}

export interface Memory {
	/** What scripts hold after what they dropped was collected, MiB. */
	heap: number;
	/** Resident memory of the process that shows the tab: that of the largest of its kind, MiB. */
	resident: number;
	/** Elements of the document. */
	nodes: number;
}

export async function memory(browser: Browser, tab: Tab): Promise<Memory> {
	const own = await tab.page.context().newCDPSession(tab.page);
	await own.send("Performance.enable");
	// As it is, with what the collector has not come to yet.
	const resident = await largestRenderer(browser);
	await own.send("HeapProfiler.collectGarbage");
	const heap = (await counter(own, "JSHeapUsedSize")) / MIB;
	const nodes = await counter(own, "Nodes");
	await own.detach();
	return { heap, resident, nodes };
}

async function largestRenderer(browser: Browser): Promise<number> {
	const cdp = await browser.newBrowserCDPSession();
	const { processInfo } = await cdp.send("SystemInfo.getProcessInfo");
	await cdp.detach();
	const sizes = processInfo.filter((process) => process.type === "renderer").map((process) => residentMib(process.id));
	return Math.max(0, ...sizes);
}

/** Resident memory of a process, MiB. */
export function residentMib(pid: number): number {
	const kib = /VmRSS:\s*(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
	return Number(kib ?? 0) / 1024;
}

/** Adds up what comes over the wire, compressed: what the page itself is, and answers of the server. */
export async function weigh(tab: Tab): Promise<{ page: number; answers: number }> {
	const sum = { page: 0, answers: 0 };
	const cdp = await tab.page.context().newCDPSession(tab.page);
	await cdp.send("Network.enable");
	const urls = new Map<string, string>();
	cdp.on("Network.requestWillBeSent", ({ requestId, request }) => urls.set(requestId, request.url));
	cdp.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
		if (urls.get(requestId)?.includes("/api/")) sum.answers += encodedDataLength;
		else sum.page += encodedDataLength;
	});
	return sum;
}

/** Processor time of a process so far, of all its threads, milliseconds: counted in steps of 10. */
export function processorMs(pid: number): number {
	const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
	// The name before it may hold anything, but for a parenthesis behind its last.
	const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
	return (Number(fields[11]) + Number(fields[12])) * 10;
}

export interface Latency {
	name: string;
	/** Milliseconds, in order of size; the first question apart. */
	first: number;
	times: number[];
	/** Processor time of the server for a question, milliseconds: tells more than the clock does on a busy machine. */
	processor: number;
	kib: number;
	status: number;
}

/** Asks an address, then the same `turns` times more; `path` is given which time it is. */
export async function latency(
	server: Server,
	name: string,
	path: (turn: number) => string,
	turns: number,
): Promise<Latency> {
	let first = 0;
	let bytes = 0;
	let status = 0;
	const before = processorMs(server.pid);
	const times: number[] = [];
	for (let turn = 0; turn <= turns; turn += 1) {
		const begun = performance.now();
		const answer = await ask(server, path(turn));
		const body = await answer.arrayBuffer();
		const took = performance.now() - begun;
		status = answer.status;
		bytes = Math.max(bytes, body.byteLength);
		if (turn === 0) first = took;
		else times.push(took);
		// What takes so long is not asked again only to take a median.
		if (took > 5000) break;
	}
	const processor = (processorMs(server.pid) - before) / (times.length + 1);
	return { name, first, times: times.sort((a, b) => a - b), processor, kib: bytes / 1024, status };
}

/** The value that `share` of the sorted values do not exceed. */
export function at(sorted: readonly number[], share: number): number {
	return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
