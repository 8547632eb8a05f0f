// How fast the page is on a session, in headless Chromium:
//
//     ../.deps/node tests/page/speed.ts SESSION.fathom [--minutes 2] [--turns 5] [--only first,addresses,frames,live,memory]
//
// The first view in a browser at rest, with nothing cached and beside what an empty page takes; page weight, frame times while plots are zoomed and moved, every
// address of the server, and the memory of the tab after looking around for some minutes. Aims stand beside what was
// measured. `./do bench page` makes a large session and runs this.

import { readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { Browser } from "playwright-core";
import {
	ask,
	FATHOM,
	folder,
	open,
	openTab,
	recording,
	remove,
	type Server,
	serve,
	startBrowser,
	type Tab,
} from "./harness.ts";
import {
	at,
	atRest,
	frames,
	type Latency,
	latency,
	mainThread,
	memory,
	processorMs,
	residentMib,
	shownAt,
	watchFor,
	weigh,
} from "./measure.ts";

/** What the page is made to reach. */
const AIMS = { plotsMs: 500, firstMs: 1000, liveMs: 1000, weightKib: 400, frameMs: 1000 / 60, memoryMib: 500 };

/** What can be left out. */
const PARTS = ["first", "addresses", "frames", "live", "memory"] as const;

function say(text = ""): void {
	process.stdout.write(`${text}\n`);
}

function aim(met: boolean, text: string): string {
	return `${met ? "meets" : "MISSES"} the aim of ${text}`;
}

/** How long the browser takes to show an address of the server that has nothing: what every view takes at least. */
async function emptyPage(browser: Browser, server: Server): Promise<void> {
	const times: number[] = [];
	for (let turn = 0; turn < 5; turn += 1) {
		const tab = await openTab(browser, server);
		await atRest(browser);
		const begun = performance.now();
		await tab.page.goto(`${server.origin}/nothing`);
		await tab.page.waitForSelector("body");
		times.push(performance.now() - begun);
		await tab.close();
	}
	times.sort((a, b) => a - b);
	say(`an address without anything: ${at(times, 0.5).toFixed(0)} ms, the median of ${times.length}`);
}

/** The first view: from the address to plots and lists. */
async function firstView(browser: Browser, server: Server, session: string, how: string): Promise<void> {
	const tab = await openTab(browser, server);
	const weight = await weigh(tab);
	const worked = await mainThread(tab);
	await atRest(browser);
	await watchFor(tab, ".u-over");
	const processor = processorMs(server.pid);
	const begun = performance.now();
	const after = () => performance.now() - begun;
	await tab.page.goto(`${server.origin}/?s=${encodeURIComponent(session)}#token=${server.token}`);
	const plots = (await shownAt(tab)) - performance.timeOrigin - begun;
	await Promise.all(
		["path", "syscall", "thread"].map((kind) =>
			tab.page.waitForSelector(`.top-${kind} tbody tr`, { timeout: 120_000 }),
		),
	);
	const lists = after();
	const work = processorMs(server.pid) - processor;
	const drawn = await worked();
	const page = weight.page / 1024;
	say(`${how}`);
	say(`  plots                 ${plots.toFixed(0)} ms, ${aim(plots < AIMS.plotsMs, `${AIMS.plotsMs} ms`)}`);
	say(`  lists                 ${lists.toFixed(0)} ms, ${aim(lists < AIMS.firstMs, `${AIMS.firstMs} ms`)}`);
	say(
		`  until then            ${work} ms of processor time in the server, ${drawn.toFixed(0)} ms of the tab's main thread`,
	);
	say(`  page, compressed      ${page.toFixed(0)} KiB, ${aim(page < AIMS.weightKib, `${AIMS.weightKib} KiB`)}`);
	say(`  answers of the server ${(weight.answers / 1024).toFixed(0)} KiB`);
	// A diagnosis looks at every call: whatever else is there must not wait for it.
	await tab.page.waitForSelector(".findings-list, [aria-label=Findings] .state h2", { timeout: 600_000 });
	say(`  findings              ${after().toFixed(0)} ms`);
	await tab.close();
}

/** Zooms and moves by keys, as a reader does. */
async function gestures(browser: Browser, server: Server, session: string, view: string, width: number): Promise<void> {
	const tab = await openTab(browser, server, { width, height: width === 1280 ? 800 : 1440 });
	const begun = performance.now();
	await open(tab, server, { s: session, view });
	say(`${view} at ${width} pixels: there after ${(performance.now() - begun).toFixed(0)} ms`);
	await tab.page.waitForTimeout(1500);
	await tab.page.mouse.move(width / 2, 300);
	for (const [key, what, ms] of [
		["w", "zooming in", 4000],
		["d", "moving", 3000],
		["a", "moving back", 3000],
		["s", "zooming out", 4000],
	] as const) {
		const { times, work } = await frames(tab, key, ms);
		const late = times.filter((t) => t > AIMS.frameMs * 1.5).length;
		say(
			`  ${what.padEnd(12)} ${String(times.length).padStart(4)} frames: median ${at(times, 0.5).toFixed(1)} ms, ` +
				`p95 ${at(times, 0.95).toFixed(1)}, longest ${at(times, 1).toFixed(0)}; ` +
				`${((late / Math.max(1, times.length)) * 100).toFixed(1)} % late; main thread ${work.toFixed(1)} ms a frame`,
		);
	}
	await tab.close();
}

/** Addresses as the page asks them: the whole session, and windows in it, each time others. */
async function addresses(server: Server, session: string, turns: number): Promise<void> {
	const base = `/sessions/${encodeURIComponent(session)}`;
	const about = (await (await ask(server, base)).json()) as { span: { from: number; to: number } | null };
	const { from, to } = about.span ?? { from: 0, to: 1 };
	const part = (share: number) => (turn: number) => {
		const width = (to - from) * share;
		const begin = from + ((turn * 0.37) % 1) * (to - from - width);
		return `from=${Math.floor(begin)}&to=${Math.ceil(begin + width)}`;
	};
	const middle = part(0.1);
	const narrow = part(1e-4);
	const filter = (value: object) => `f=${encodeURIComponent(JSON.stringify(value))}`;
	const read = filter({ syscall: ["pread64", "read"] });
	const { decode } = await import("./columns.ts");
	const busiest = async (by: string) => {
		const answer = await ask(server, `${base}/top?by=${by}&limit=1`);
		return decode(new Uint8Array(await answer.arrayBuffer())).first("key");
	};
	const file = await busiest("file");
	const list: [string, (turn: number) => string][] = [
		["description", () => base],
		["tiles by=none, all", () => `${base}/tiles?by=none&latency=1&pixels=600`],
		["tiles by=syscall, all", () => `${base}/tiles?by=syscall&top=8&pixels=600`],
		["tiles by=file, all", () => `${base}/tiles?by=file&top=12&latency=1&pixels=1`],
		["tiles by=thread, 1/10", (n) => `${base}/tiles?by=thread&top=12&pixels=600&${middle(n)}`],
		["tiles by=file, 1/10", (n) => `${base}/tiles?by=file&top=12&latency=1&pixels=256&${middle(n)}`],
		["tiles by=none, 1/10,000", (n) => `${base}/tiles?by=none&latency=1&pixels=600&${narrow(n)}`],
		["tiles, one syscall, all", () => `${base}/tiles?by=none&latency=1&pixels=600&${read}`],
		["timeline, all", () => `${base}/timeline?pixels=1000`],
		["timeline, 1/10", (n) => `${base}/timeline?pixels=1000&${middle(n)}`],
		["timeline, 1/10,000", (n) => `${base}/timeline?pixels=1000&${narrow(n)}`],
		["threads, all", () => `${base}/threads`],
		["threads, 1/10", (n) => `${base}/threads?${middle(n)}`],
		["top files by time, all", () => `${base}/top?by=file&limit=12`],
		["top files by calls, all", () => `${base}/top?by=file&sort=calls&limit=12`],
		["top files by bytes, 1/10", (n) => `${base}/top?by=file&sort=bytes&limit=12&${middle(n)}`],
		["top syscalls by p99, all", () => `${base}/top?by=syscall&sort=p99_ns&limit=12`],
		["events, begin", () => `${base}/events?limit=200`],
		["events, in the middle", (n) => `${base}/events?limit=200&offset=${1000 * n}&${middle(n)}`],
		["events, slowest, all", () => `${base}/events?limit=200&sort=-dur_ns`],
		["request", (n) => `${base}/requests/${1000 + n * 7919}`],
		["offsets of a file, all", () => `${base}/offsets?file=${file}&unique=0`],
		["offsets of a file, unique bytes", () => `${base}/offsets?file=${file}`],
		["layers by window, all", () => `${base}/layers?pixels=600`],
		["layers, longest, 1/10", (n) => `${base}/layers?mode=requests&sort=-dur_ns&${middle(n)}`],
		["devices", () => `${base}/devices`],
		["cache", () => `${base}/cache?pixels=600`],
		["schema", () => `${base}/schema`],
		["findings", () => `${base}/findings`],
	];
	say(
		"addresses of the server, ms: the first time, then median and longest of others; the server's processor time for one",
	);
	for (const [name, path] of list) {
		const answer = await latency(server, name, path, turns);
		say(`  ${line(answer)}`);
	}
}

function line({ name, first, times, processor, kib, status }: Latency): string {
	const more = times.length > 0 ? [at(times, 0.5), at(times, 1)].map((t) => t.toFixed(0)) : ["-", "-"];
	const figures = [first.toFixed(0), ...more, processor.toFixed(0)].map((t) => t.padStart(7)).join("");
	return `${name.padEnd(34)}${figures}  ${kib.toFixed(1).padStart(8)} KiB${status === 200 ? "" : `  status ${status}`}`;
}

/** Looks around in all views, as a reader does, for so long. */
async function browse(tab: Tab, minutes: number): Promise<void> {
	const end = Date.now() + minutes * 60_000;
	for (let turn = 0; Date.now() < end; turn += 1) {
		await tab.page.keyboard.press("Escape");
		await tab.page.keyboard.press(["2", "1", "3", "4", "5", "6", "7"][turn % 7] ?? "2");
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

/** From a call of a program that is being recorded to the screen: a program makes some, and writes down when. */
async function live(browser: Browser): Promise<void> {
	if (process.getuid?.() !== 0) return say("live: left out, as recording needs root");
	const dir = folder();
	const log = join(dir, "times");
	const child = recording(dir, "live", `while sleep 1.3; do date +%s%N >> ${log}; done`);
	const ended = new Promise((done) => child.on("exit", done));
	try {
		const server = await serve(dir);
		while (((await (await ask(server, "/sessions")).json()) as unknown[]).length === 0) await pause(100);
		const tab = await openTab(browser, server);
		await open(tab, server, { s: "live.fathom" });
		await tab.page.evaluate(watchCalls);
		const begun = Date.now();
		const processor = processorMs(server.pid);
		await pause(20_000);
		const work = (processorMs(server.pid) - processor) / ((Date.now() - begun) / 1000);
		const rises = await tab.page.evaluate(() => (window as unknown as { rises: number[] }).rises);
		// The last one may not be on the screen yet.
		const made = readFileSync(log, "utf8")
			.trim()
			.split("\n")
			.map((ns) => Number(ns) / 1e6);
		const lags = made
			.filter((at) => at > begun && at < begun + 17_000)
			.map((at) => (rises.find((rise) => rise > at) ?? Number.POSITIVE_INFINITY) - at)
			.sort((a, b) => a - b);
		const [median, longest] = [at(lags, 0.5), at(lags, 1)];
		say(
			`live: from a call to the screen ${median.toFixed(0)} ms (median of ${lags.length}), longest ${longest.toFixed(0)}, ` +
				`${aim(longest < AIMS.liveMs, `${AIMS.liveMs} ms`)}; the server's processor time ${work.toFixed(0)} ms a second`,
		);
		await tab.close();
		await server.stop();
	} finally {
		child.kill("SIGTERM");
		await ended;
		remove(dir);
	}
}

/** In the page: notes when the number of calls on the screen grows, milliseconds since 1970. */
function watchCalls(): void {
	const own = window as unknown as { rises: number[] };
	own.rises = [];
	const calls = () =>
		Number(
			[...document.querySelectorAll(".summary > div")]
				.find((of) => of.querySelector("dt")?.textContent === "Calls")
				?.getAttribute("title")
				?.replace(/\D/g, "") ?? 0,
		);
	let before = calls();
	new MutationObserver(() => {
		const now = calls();
		if (now > before) own.rises.push(performance.timeOrigin + performance.now());
		before = now;
	}).observe(document.body, { subtree: true, attributes: true, childList: true, characterData: true });
}

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** What is held after so many minutes of looking around. */
async function afterwards(browser: Browser, server: Server, session: string, minutes: number): Promise<void> {
	const tab = await openTab(browser, server);
	await open(tab, server, { s: session, view: "timeline" });
	await browse(tab, minutes);
	const { heap, resident, nodes } = await memory(browser, tab);
	say(`after ${minutes} min of looking around`);
	say(`  memory of the tab     ${resident.toFixed(0)} MiB, ${aim(resident < AIMS.memoryMib, `${AIMS.memoryMib} MB`)}`);
	say(`  held by scripts       ${heap.toFixed(0)} MiB, ${nodes} elements`);
	say(`  the server's memory   ${residentMib(server.pid).toFixed(0)} MiB`);
	for (const fault of tab.faults) say(`  went wrong: ${fault}`);
	await tab.close();
}

async function main(): Promise<void> {
	const { values, positionals } = parseArgs({
		allowPositionals: true,
		options: {
			minutes: { type: "string", default: "2" },
			turns: { type: "string", default: "5" },
			only: { type: "string", default: PARTS.join(",") },
		},
	});
	const [path] = positionals;
	if (!path) throw new Error(`usage: speed.ts SESSION.fathom [--minutes 2] [--turns 5] [--only ${PARTS.join(",")}]`);
	const wanted = (part: (typeof PARTS)[number]) => values.only.split(",").includes(part);
	const session = basename(resolve(path));
	const browser = await startBrowser();

	// A server of its own, which has opened nothing yet.
	const server = await serve(dirname(resolve(path)));
	const about = (await (await ask(server, "/sessions")).json()) as { id: string; stored: number; bytes: number }[];
	const own = about.find((s) => s.id === session);
	if (!own) throw new Error(`no session ${session} in ${dirname(resolve(path))}`);
	say(`${FATHOM} on ${session}: ${own.stored.toLocaleString("en")} calls`);
	if (wanted("first")) {
		await emptyPage(browser, server);
		await firstView(browser, server, session, "first view, the server new to the session");
		await firstView(browser, server, session, "first view, the session open in the server");
	}
	if (wanted("addresses")) await addresses(server, session, Number(values.turns));
	if (wanted("frames")) {
		for (const width of [1280, 2560]) await gestures(browser, server, session, "timeline", width);
		await gestures(browser, server, session, "overview", 1280);
	}
	if (wanted("live")) await live(browser);
	if (wanted("memory")) await afterwards(browser, server, session, Number(values.minutes));
	await browser.close();
	await server.stop();
}

await main();
