// Six questions that people bring to a session, each answered within three steps of opening it. What is read on the page
// is compared with SQL, and a step is whatever a reader does: a click, a key, a file that is opened.

import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tableFromIPC } from "apache-arrow";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
	folder,
	open,
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

const MOST = 3;
/** Recordings until the neighbor makes a difference. */
const TRIES = 4;

/** Appends to a journal and makes each record durable; reads a table here and there. */
const STORE = `
import os, random, time
random.seed(7)
journal = os.open("journal.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
table = os.open("table.dat", os.O_RDWR | os.O_CREAT)
os.pwrite(table, os.urandom(4 << 20), 0)
os.fsync(table)
for _ in range(800):
    os.pread(table, 4096, random.randrange(1000) * 4096)
end = time.monotonic() + 2.5
syncs = 0
# A comparison has a p99 from 100 calls on.
while time.monotonic() < end or syncs < 120:
    for _ in range(4):
        os.write(journal, b"r" * 1000)
    os.fdatasync(journal)
    syncs += 1
`;

/** Keeps a device busy with large direct writes from many threads, as a backup does. */
const HOG = `
import mmap, os, sys, threading
open("/proc/self/comm", "w").write("hog")
size = 1 << 20
buffer = mmap.mmap(-1, size)
buffer.write(b"h" * size)
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
def work(first):
    while True:
        for at in range(first, 256, 32):
            os.pwrite(file, buffer, at * size)
for first in range(32):
    threading.Thread(target=work, args=(first,), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
os._exit(0)
`;

/** Runs the hog while something else is done. */
async function beside(dir: string, run: () => void): Promise<void> {
	const hog: ChildProcess = spawn("python3", ["-c", HOG, join(dir, "hog.dat")], { stdio: ["pipe", "pipe", "inherit"] });
	try {
		await new Promise((done, fail) => {
			hog.stdout?.once("data", done);
			hog.once("exit", () => fail(new Error("the hog ended")));
		});
		run();
	} finally {
		const ended = new Promise((done) => hog.once("exit", done));
		hog.stdin?.end();
		await ended;
	}
}

const reason = whyNot();
if (reason !== null) process.stdout.write(`SKIPPED: tests of tasks in a browser: ${reason}\n`);

describe.skipIf(reason !== null)("within three steps of opening a session", () => {
	let dir: string;
	let server: Server;
	let browser: Awaited<ReturnType<typeof startBrowser>>;

	/** Records the program alone and next to the hog. */
	async function stage(): Promise<void> {
		dir = folder();
		const script = join(dir, "store.py");
		writeFileSync(script, STORE);
		record(dir, "quiet", `python3 ${script}`);
		await beside(dir, () => record(dir, "busy", `python3 ${script}`));
		server = await serve(dir);
	}

	beforeAll(async () => {
		browser = await startBrowser();
		// Where others used the disk while the program was alone, there is nothing to explain.
		for (let left = TRIES; ; left -= 1) {
			await stage();
			if ((await p99("busy")) > (await p99("quiet")) * 2 || left === 1) break;
			await server.stop();
			remove(dir);
		}
	}, 180_000);
	afterAll(async () => {
		await browser?.close();
		await server?.stop();
		if (dir) remove(dir);
	});

	async function sql<T extends Record<string, unknown>>(id: string, statement: string): Promise<T> {
		const answer = await fetch(`${server.origin}/api/sessions/${id}.fathom/sql`, {
			method: "POST",
			headers: { Authorization: `Bearer ${server.token}`, "Content-Type": "application/json" },
			body: JSON.stringify({ sql: statement }),
		});
		if (!answer.ok) throw new Error(await answer.text());
		return tableFromIPC(new Uint8Array(await answer.arrayBuffer()))
			.toArray()[0]
			?.toJSON() as T;
	}

	async function p99(id: string): Promise<number> {
		const statement = "SELECT quantile_disc(dur_ns, 0.99)::DOUBLE AS ns FROM syscalls WHERE syscall = 'fdatasync'";
		return (await sql<{ ns: number }>(id, statement)).ns;
	}

	/** Does a task from an opened page on, in a tab of its own; nothing may fail unseen, and the steps are counted. */
	async function task(
		state: Record<string, string>,
		work: (tab: Tab, step: (act: () => Promise<unknown>) => Promise<void>) => Promise<void>,
	): Promise<void> {
		const tab = await openTab(browser, server);
		let steps = 0;
		try {
			await open(tab, server, state);
			await work(tab, async (act) => {
				steps += 1;
				await act();
				await settled(tab.page);
			});
			expect(steps).toBeLessThanOrEqual(MOST);
			expect(tab.faults).toEqual([]);
		} finally {
			await tab.close();
		}
	}

	const busy = { s: "busy.fathom" };

	it("which file cost most, and why", async () => {
		const { path } = await sql<{ path: string }>(
			"busy",
			"SELECT path FROM syscalls WHERE path IS NOT NULL GROUP BY path ORDER BY sum(dur_ns) DESC LIMIT 1",
		);
		expect(path).toContain("journal.log");
		await task(busy, async ({ page }) => {
			const first = page.locator(".where-file tbody tr").first();
			await expect.poll(() => first.innerText()).toContain("journal.log");
			const story = page.locator(".story");
			await expect.poll(() => story.innerText()).toContain(path);
			// How much of its time went where, and to whom.
			expect(await story.innerText()).toMatch(/\d %\sof that time (was spent|passed) .*hog \(PID \d+\) ahead/s);
		});
	});

	it("the slowest sync, and what the machine did then", async () => {
		const { rid } = await sql<{ rid: bigint }>(
			"busy",
			"SELECT rid FROM syscalls WHERE syscall = 'fdatasync' ORDER BY dur_ns DESC, rid LIMIT 1",
		);
		await task(busy, async ({ page }, step) => {
			await step(() => page.locator(".where-syscall tbody tr", { hasText: "fdatasync" }).click());
			await step(() => page.getByRole("menuitem", { name: "Slowest call" }).click());
			await expect.poll(() => page.url()).toContain(`rid=${rid}`);
			await expect
				.poll(() => page.locator(".request-why").innerText())
				.toMatch(/This fdatasync .* took [\d.]+ (ms|s)/s);
			const meanwhile = page.getByRole("region", { name: "Meanwhile" });
			await expect.poll(() => meanwhile.innerText()).toMatch(/hog \d+ had [\d\s.k]+ requests \([\d.]+ [MG]iB\)/);
		});
	});

	it("what made the p99 worse", async () => {
		const [before, after] = [await p99("quiet"), await p99("busy")];
		expect(after / before).toBeGreaterThan(2);
		await task({ view: "sessions" }, async ({ page }, step) => {
			await step(() => page.getByLabel("Compare busy.fathom").check());
			await step(() => page.getByLabel("Compare quiet.fathom").check());
			await step(() => page.getByRole("button", { name: /^Compare: quiet.*busy/ }).click());
			const figure = page.locator(".compare-hero dl > div, dl > div").filter({ hasText: "p99 of fdatasync" });
			await expect.poll(() => figure.innerText()).toContain("→");
			const [quiet, loud] = [...((await figure.getAttribute("title")) ?? "").matchAll(/([\d\u202f]+) ns/g)].map((m) =>
				Number(m[1]?.replace(/\D/g, "")),
			);
			expect((quiet ?? 0) / before).toBeGreaterThan(0.8);
			expect((quiet ?? 0) / before).toBeLessThan(1.25);
			expect((loud ?? 0) / after).toBeGreaterThan(0.8);
			expect((loud ?? 0) / after).toBeLessThan(1.25);
			// The call, and where its time went.
			const said = await page.locator("main").innerText();
			expect(said).toMatch(/fdatasync .*journal\.log/);
			expect(said).toMatch(/Where the time went: \+.*(in the queue of|in device)/);
		});
	});

	it("whether a file is gone through in order", async () => {
		await task(busy, async ({ page }, step) => {
			await step(() => page.getByRole("link", { name: "File", exact: true }).click());
			const verdict = page.locator(".file-verdict");
			const head = page.locator(".file-head");
			const shown = async (name: string) => {
				await step(() => page.locator(".picker-list li", { hasText: name }).getByText(name).first().click());
				await expect.poll(() => head.innerText()).toContain(name);
			};
			await shown("journal.log");
			await expect.poll(() => verdict.innerText()).toMatch(/^Writes (100|99\.\d+) % sequential in one pass/);
			await shown("table.dat");
			await expect.poll(() => verdict.innerText()).toMatch(/reads random \([\d.]+ % sequential\)/i);
		});
	});

	it("who filled the queue", async () => {
		const { name } = await sql<{ name: string }>(
			"busy",
			"SELECT comm AS name FROM block GROUP BY comm ORDER BY sum(dur_ns) DESC LIMIT 1",
		);
		expect(name).toBe("hog");
		await task(busy, async ({ page }, step) => {
			await step(() => page.getByRole("link", { name: "Devices", exact: true }).click());
			const said = page.locator(".devices-said");
			await expect.poll(() => said.innerText()).toMatch(/: hog [\d.]+ %/);
		});
	});

	it("how a colleague gets to see it", async () => {
		await task(busy, async ({ page, context }, step) => {
			const story = await page.locator(".story-text").innerText();
			await step(() => page.locator(".share > summary").click());
			const [file] = await Promise.all([
				page.waitForEvent("download"),
				step(() => page.getByRole("button", { name: "Save as page" }).click()),
			]);
			const kept = join(dir, "sent.html");
			await file.saveAs(kept);
			expect(readFileSync(kept, "utf8")).not.toContain(server.token);
			// The colleague has no server.
			const other = await context.browser()?.newContext({ offline: true });
			if (!other) throw new Error("no browser");
			const theirs = await other.newPage();
			await theirs.goto(`file://${kept}`);
			await expect.poll(() => theirs.locator(".story-text").innerText()).toBe(story);
			await other.close();
		});
	});
});
