// What readers of the views rely upon: which file comes first, which errors are red, what a click leads to, what is asked.

import { join } from "node:path";
import { tableFromIPC } from "apache-arrow";
import { expect, it } from "vitest";
import { MOST } from "../../src/app/visit.ts";
import { duration } from "../../src/lib/format.ts";
import { ask, open, settled } from "./harness.ts";
import { session, sql, WORK } from "./recorded.ts";
import { dir, onStage, openSaved, server, tab } from "./stage.ts";

/** A thread that waits in poll until another one writes. */
const WAITS = `python3 -c 'import os, select, threading
r, w = os.pipe()
threading.Timer(0.2, lambda: os.write(w, b"x")).start()
p = select.poll()
p.register(r)
p.poll()
open("out", "w").write("x")'`;

/** A scan of a file, then as many random reads of it; and another one that another thread reads from its end. */
const READS = `python3 -c 'import os, random, threading
random.seed(1)
n = 2000
with open("mixed", "wb") as f: f.write(bytes(n * 4096))
with open("backward", "wb") as f: f.write(bytes(n * 4096))
mixed = os.open("mixed", os.O_RDONLY)
for i in range(n): os.pread(mixed, 4096, i * 4096)
for i in range(n): os.pread(mixed, 4096, random.randrange(n) * 4096)
backward = os.open("backward", os.O_RDONLY)
def back():
    for i in reversed(range(n)): os.pread(backward, 4096, i * 4096)
threading.Thread(target=back).start()'`;

/** Many small files in two directories, and a large one. */
const SMALL = `mkdir -p small/a small/b
for i in $(seq 60); do echo $i > small/a/$i; echo $i > small/b/$i; done
dd if=/dev/zero of=large bs=1M count=16 conv=fsync 2>/dev/null
cat small/*/* > /dev/null`;

const sessions = [
	["work", WORK, ["--layers", "all"]],
	["waits", WAITS, ["--layers", "all"]],
	["reads", READS, []],
	["small", SMALL, []],
] as const;

onStage("reading", sessions, () => {
	it("File opens with the program's own file with the most time", async () => {
		const [own] = await sql(
			`SELECT files.path AS path FROM syscalls JOIN files USING (file_id)
			WHERE files.file_type = 'regular'
				AND NOT regexp_matches(files.path, '^/(usr|lib|lib64|etc|proc|sys|dev)/|/lib/python|[.]pyc$')
			GROUP BY files.path HAVING sum(bytes) > 0 ORDER BY sum(dur_ns) DESC LIMIT 1`,
		);
		await open(tab, server, { ...session, view: "file" });
		expect(await tab.page.locator(".file-head h1").innerText()).toBe(String(own?.["path"]));
		expect(await tab.page.locator('.picker [aria-pressed="true"]').innerText()).toBe("time");
	});

	it("the card of a call says why it took so long, as its own view does", async () => {
		const [slow] = await sql("SELECT rid::DOUBLE AS rid FROM syscalls ORDER BY dur_ns DESC, rid LIMIT 1");
		const rid = Number(slow?.["rid"]);
		const why = async (view: string) => {
			await open(tab, server, { ...session, view, rid });
			return tab.page.locator(".request-why").innerText();
		};
		const whole = await why("request");
		expect(whole.length).toBeGreaterThan(40);
		expect([await why("timeline"), await why("table")]).toEqual([whole, whole]);
	});

	it("the table has errors in red where the call failed, as SQL says", async () => {
		const rows = await sql(
			"SELECT syscall, errno, call_failed(syscall, errno) AS failed FROM syscalls WHERE errno <> ''",
		);
		const failed = new Map(rows.map((row) => [`${row["syscall"]} ${row["errno"]}`, Boolean(row["failed"])]));
		expect(failed.get("openat ENOENT")).toBe(false);
		await open(tab, server, { ...session, view: "table", f: JSON.stringify({ error: "any" }) });
		await expect.poll(() => tab.page.locator(".grid-row").count()).toBeGreaterThan(5);
		const shown = await tab.page.locator(".grid-row").evaluateAll((found) =>
			found.map((row) => {
				const [call, error] = [row.children[4], row.children[5]];
				return [`${call?.textContent} ${error?.textContent}`, error?.classList.contains("danger")] as const;
			}),
		);
		for (const [error, red] of shown) expect(red, error).toBe(failed.get(error));
	});

	it("the Overview asks each question once", async () => {
		const asked: string[] = [];
		tab.page.on("request", (request) => asked.push(new URL(request.url()).pathname + new URL(request.url()).search));
		await open(tab, server, { ...session, view: "overview" });
		const questions = asked.filter((path) => path.startsWith("/api/")).sort();
		expect(questions.length).toBeGreaterThan(8);
		expect(questions).toEqual([...new Set(questions)]);
	});

	it("the figures of the Overview lead on", async () => {
		const figures = [
			["Time in calls", "view=flame"],
			["Longest call", "view=request"],
			["p99 of", "latency="],
			["Calls", "view=table"],
			["Read", "order=bytes"],
			["Written", "order=bytes"],
		] as const;
		for (const [name, leads] of figures) {
			await open(tab, server, { ...session, view: "overview" });
			const figure = tab.page.locator(".summary > .leads").filter({ has: tab.page.getByText(new RegExp(`^${name}`)) });
			await figure.first().getByRole("button").click();
			await expect.poll(() => tab.page.url(), { message: name }).toContain(leads);
		}
	});

	it("results of SQL are in readable units, and exact where they are copied", async () => {
		const statement = "SELECT 1500 AS dur_ns, 4096 AS bytes, 1500 AS n";
		await open(tab, server, { ...session, view: "sql", sql: statement });
		const cells = tab.page.locator(".result-row").first().getByRole("gridcell");
		await expect.poll(() => cells.allInnerTexts()).toEqual(["1.5 µs", "4 KiB", "1500"]);
		expect(await cells.first().getAttribute("title")).toBe("1500");
		await tab.page.getByRole("checkbox", { name: "readable units" }).uncheck();
		await expect.poll(() => cells.allInnerTexts()).toEqual(["1500", "4096", "1500"]);
		expect(tab.page.url()).toContain("units=exact");
	});

	it("Blame hides waits for work until they are asked for", async () => {
		const idle = "resource = 'poll' OR resource = 'timer' AND (culprit_tid IS NULL OR culprit_tid = victim_tid)";
		const [waits] = await sql(
			`SELECT count(*)::DOUBLE AS n, count(*) FILTER (${idle})::DOUBLE AS idle,
			sum(time_ns) FILTER (${idle})::DOUBLE AS hidden FROM blame`,
			"waits.fathom",
		);
		const [n, hidden] = [Number(waits?.["n"]), Number(waits?.["idle"])];
		expect(hidden).toBeGreaterThan(0);
		const rows = tab.page.locator(".blame-rows tbody tr");
		const note = tab.page.locator(".blame-said").getByText(/of idle waits/);
		await open(tab, server, { s: "waits.fathom", view: "blame", by: "thread" });
		expect(await rows.count()).toBe(Math.min(200, n - hidden));
		expect(await note.innerText()).toContain(`${duration(Number(waits?.["hidden"]))} of idle waits`);
		await tab.page.getByRole("checkbox", { name: "idle waits" }).check();
		await expect.poll(() => tab.page.url()).toContain("idle=shown");
		await expect.poll(() => rows.count()).toBe(Math.min(200, n));
		expect(await note.count()).toBe(0);
	});

	it("Blame counts the waiting in the window", async () => {
		const [middle] = await sql(
			`SELECT ((min(ts_ns) + max(ts_ns + dur_ns)) // 2 - (SELECT started_at_ns FROM session))::DOUBLE AS t FROM waits`,
			"waits.fathom",
		);
		const t = Number(middle?.["t"]);
		const total = async (window: string) => {
			const answer = await ask(server, `/sessions/waits.fathom/questions/blame-threads${window}`);
			const rows = tableFromIPC(new Uint8Array(await answer.arrayBuffer())).toArray();
			return rows.reduce((sum, row) => sum + Number(row.time_ns), 0);
		};
		const [before, after] = [await total(`?to=${t}`), await total(`?from=${t}`)];
		expect(before).toBeGreaterThan(0);
		expect(after).toBeGreaterThan(0);
		expect(before + after).toBe(await total(""));
		const shown = async () => {
			const cells = tab.page.locator(".blame-rows tbody td:nth-child(4)");
			const titles = await cells.evaluateAll((all) => all.map((cell) => cell.getAttribute("title") ?? ""));
			return titles.reduce((sum, title) => sum + Number(title.replace(/\D/g, "")), 0);
		};
		const window = { from: String(t), to: String(t + 3600e9) };
		await open(tab, server, { s: "waits.fathom", view: "blame", by: "thread", idle: "shown", ...window });
		await expect.poll(shown).toBe(after);
	});

	it("calls in progress are those that last through the window, whenever they began", async () => {
		const [slow] = await sql(
			`SELECT (ts_ns - (SELECT started_at_ns FROM session))::DOUBLE AS t, dur_ns::DOUBLE AS dur
			FROM syscalls ORDER BY dur_ns DESC LIMIT 1`,
		);
		const [t, dur] = [Number(slow?.["t"]), Number(slow?.["dur"])];
		const [from, to] = [Math.round(t + dur / 4), Math.round(t + dur / 2)];
		const [expected] = await sql(
			`SELECT sum(least(ts_ns + dur_ns, start + ${to}) - greatest(ts_ns, start + ${from}))::DOUBLE / ${to - from} AS n
			FROM syscalls, (SELECT started_at_ns AS start FROM session)
			WHERE ts_ns < start + ${to} AND ts_ns + dur_ns > start + ${from}`,
		);
		await open(tab, server, { ...session, view: "overview", from: String(from), to: String(to) });
		const figure = tab.page.getByText(/calls in progress on average/);
		const shown = async () => Number.parseFloat(await figure.first().innerText());
		// Whole buckets are counted: one in hundreds is too much.
		await expect.poll(shown).toBeGreaterThan(Number(expected?.["n"]) * 0.97);
		expect(await shown()).toBeLessThan(Number(expected?.["n"]) * 1.03 + 0.05);
	});

	it("File tells random reads from reads with gaps, and backward reads", async () => {
		const said = async (name: string) => {
			const [file] = await sql(
				`SELECT file_id::DOUBLE AS id FROM files WHERE parse_filename(path) = '${name}'`,
				"reads.fathom",
			);
			await open(tab, server, { s: "reads.fathom", view: "file", file: String(file?.["id"]) });
			return tab.page.locator(".file-head").innerText();
		};
		// By one thread, and by two.
		expect(await said("mixed")).toMatch(/^(?!.*Per thread).*reads 50(\.\d)? % sequential, the others random/is);
		expect(await said("backward")).toMatch(/Per thread: .*reads backward \(0 % sequential\)/);
	});

	it("many small files are one row of the overview, which leads to them", async () => {
		const [counted] = await sql(
			"SELECT count(DISTINCT path)::DOUBLE AS n FROM syscalls WHERE path LIKE '%/small/_/%'",
			"small.fathom",
		);
		expect(counted?.["n"]).toBe(120);
		for (const card of [".where-file", ".top-path"]) {
			await open(tab, server, { s: "small.fathom", view: "overview" });
			await tab.page
				.locator(card)
				.getByRole("button", { name: /^\d+ paths\b.* in \// })
				.first()
				.click();
			await tab.page.getByRole("menuitem", { name: /^Files in \/.*, most time first/ }).click();
			await expect.poll(() => tab.page.url()).toContain("view=sql");
			const first = tab.page.locator(".result-row").first().getByRole("gridcell").first();
			await expect.poll(() => first.innerText()).toMatch(/^\//);
		}
	});

	it("many small files are one frame of the flame graph, which opens", async () => {
		await open(tab, server, { s: "small.fathom", view: "flame", levels: "file,syscall" });
		const whole = await tab.page.locator(".flame-path").innerText();
		const below = tab.page.locator(".flame-below");
		await below
			.getByRole("button", { name: /^\d+ paths\b.* in / })
			.first()
			.click();
		await expect.poll(() => tab.page.locator(".flame-path").innerText()).toContain(" paths");
		const entries = await below.getByRole("button").count();
		expect(entries).toBeGreaterThan(1);
		await tab.page.locator(".flame-path").getByRole("button", { name: "all calls" }).click();
		await expect.poll(() => tab.page.locator(".flame-path").innerText()).toBe(whole);
	});

	it("answers are sent compressed to who takes that", async () => {
		const coding = async (path: string) => (await ask(server, path)).headers.get("content-encoding");
		expect(await coding(`/sessions/${session.s}/timeline?pixels=2000`)).toBe("gzip");
		expect(await coding(`/sessions/${session.s}/schema`)).toBe("gzip");
		// A few bytes.
		expect(await coding(`/sessions/${session.s}/nothing`)).toBeNull();
	});

	it("a saved page has what its explanation and its findings link to", { timeout: 240_000 }, async () => {
		await open(tab, server, { ...session, view: "overview" });
		await tab.page.locator(".share > summary").click();
		const [file] = await Promise.all([
			tab.page.waitForEvent("download", { timeout: 240_000 }),
			tab.page.getByRole("button", { name: "Save as page" }).click(),
		]);
		expect(new URL(tab.page.url()).searchParams.get("view")).toBe("overview");
		const kept = join(dir, "linked.html");
		await file.saveAs(kept);
		await openSaved(kept, async (page) => {
			const links = page.locator("a.story-link, .finding-links a[href]");
			const hrefs = await links.evaluateAll((found) => found.map((link) => link.getAttribute("href") ?? ""));
			expect(hrefs.some((href) => href.includes("view=request"))).toBe(true);
			for (const href of [...new Set(hrefs)].slice(0, MOST)) {
				await page.evaluate((to) => {
					window.location.hash = to;
					window.dispatchEvent(new PopStateEvent("popstate"));
				}, href);
				await settled(page);
				expect(await page.locator('[role="alert"]').allInnerTexts(), href).toEqual([]);
				if (!href.includes("view=request")) continue;
				// As with a server: what a view says of a panel comes after what all panels have.
				const [what, steps] = await Promise.all(
					[".request-what", ".request-links"].map((part) => page.locator(part).boundingBox()),
				);
				expect(steps?.x).toBeGreaterThan((what?.x ?? 0) + (what?.width ?? 0) - 1);
			}
			await page.evaluate(() => document.fonts.ready);
			expect(await page.evaluate(() => document.fonts.check('13px "Inter"'))).toBe(true);
		});
	});
});
