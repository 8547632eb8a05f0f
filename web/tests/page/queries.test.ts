// SQL, panels, and what leaves the page, in a browser over a session that was recorded.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { expand } from "../../src/lib/sql.ts";
import { EXAMPLES } from "../../src/state/examples.ts";
import { ask, FATHOM, open, openTab, serve, settled } from "./harness.ts";
import { colored, session, sql, WORK } from "./recorded.ts";
import { browser, dir, HOSTILE, onStage, openSaved, server, tab, text } from "./stage.ts";

onStage("queries and sharing", [["work", WORK, ["--layers", "all"]]], () => {
	describe("SQL", () => {
		const statement = "SELECT syscall, count(*) AS calls FROM syscalls GROUP BY ALL ORDER BY calls DESC";
		it("runs what is written, and the address holds it", async () => {
			await open(tab, server, { ...session, view: "sql" });
			await tab.page.keyboard.press("e");
			await tab.page.keyboard.press("Control+A");
			await tab.page.keyboard.type(statement);
			await tab.page.keyboard.press("Escape");
			await tab.page.locator(".sql-editor textarea").focus();
			await tab.page.keyboard.press("Control+Enter");
			await expect.poll(() => tab.page.locator(".result-row").count()).toBeGreaterThan(3);
			expect(new URL(tab.page.url()).searchParams.get("sql")).toBe(statement);
			const [first] = await sql(statement);
			expect(await tab.page.locator(".result-row").first().innerText()).toContain(String(first?.["syscall"]));
			await tab.page.reload();
			await expect.poll(() => tab.page.locator(".result-row").count()).toBeGreaterThan(3);
		});
		it("shows errors where they are", async () => {
			await open(tab, server, {
				...session,
				view: "sql",
				sql: "SELECT rid,\n  nothing\nFROM syscalls WHERE ts_ns > $from",
			});
			await expect.poll(() => tab.page.locator(".sql-wrong").innerText()).toBe("nothing");
			await expect.poll(() => tab.page.locator(".sql-error").innerText()).toContain("nothing");
			expect(await tab.page.locator(".sql-error").innerText()).not.toContain("LINE");
		});
		it("cannot change anything", async () => {
			for (const wrong of [
				"DROP TABLE syscalls",
				"COPY syscalls TO '/tmp/x.csv'",
				"SELECT * FROM read_csv('/etc/passwd')",
			]) {
				await open(tab, server, { ...session, view: "sql", sql: wrong });
				await expect.poll(() => tab.page.locator(".sql-error").count()).toBe(1);
			}
		});
		it("stops a statement that is cancelled, on the server too", async () => {
			const endless = "SELECT count(*) FROM range(100000000000) a, range(1000) b WHERE a.range % 7 = b.range";
			await open(tab, server, session);
			const started = tab.page.goto(
				`${server.origin}/?${new URLSearchParams({ ...session, view: "sql", sql: endless })}`,
			);
			await started;
			await tab.page.getByRole("button", { name: "Cancel" }).click();
			await expect.poll(text).toContain("The statement was stopped");
			// The place of the slow query is free again.
			const before = Date.now();
			expect((await sql("SELECT 1 AS one"))[0]?.["one"]).toBe(1);
			expect(Date.now() - before).toBeLessThan(5000);
		});
		it("follows the window and the filter", async () => {
			const counted = "SELECT count(*) AS calls FROM syscalls WHERE ts_ns BETWEEN $from AND $to AND $filter";
			await open(tab, server, { ...session, view: "sql", sql: counted });
			const shown = async () => Number(await tab.page.locator(".result-row").first().innerText());
			await expect.poll(shown).toBeGreaterThan(100);
			await open(tab, server, { ...session, view: "sql", sql: counted, f: JSON.stringify({ syscall: ["fsync"] }) });
			const [fsyncs] = await sql("SELECT count(*)::DOUBLE AS n FROM syscalls WHERE syscall = 'fsync'");
			await expect.poll(shown).toBe(Number(fsyncs?.["n"]));
		});
		it("draws results", async () => {
			await open(tab, server, { ...session, view: "sql", sql: statement, form: "stack" });
			await expect.poll(() => colored(".sql-output")).toBeGreaterThan(500);
			await tab.page.getByRole("combobox", { name: /^X:/ }).selectOption("syscall");
			expect(await tab.page.getByRole("combobox", { name: /^Color:/ }).count()).toBe(1);
			await tab.page.getByRole("button", { name: "Points" }).click();
			await expect.poll(() => tab.page.url()).toContain("form=dots");
		});
		it("offers names while one types, and puts in what is clicked", async () => {
			await open(tab, server, { ...session, view: "sql", sql: "SELECT 1 AS one" });
			await tab.page.locator(".sql-fold", { hasText: "block" }).click();
			await expect.poll(() => tab.page.locator(".sql-table li", { hasText: "queue_depth" }).count()).toBe(1);
			await tab.page.keyboard.press("e");
			await tab.page.keyboard.press("Control+A");
			await tab.page.keyboard.type("SELECT * FROM pageca");
			await expect.poll(() => tab.page.getByRole("option").first().innerText()).toContain("pagecache");
			await tab.page.keyboard.press("Tab");
			expect(await tab.page.locator(".sql-editor textarea").inputValue()).toBe("SELECT * FROM pagecache");
		});
		it("shows hostile names as text", async () => {
			await open(tab, server, {
				...session,
				view: "sql",
				sql: "SELECT path, count(*) AS calls FROM syscalls WHERE path LIKE '%onerror%' GROUP BY ALL",
			});
			await expect.poll(text).toContain(HOSTILE);
			await tab.page.getByRole("button", { name: "Lines" }).click();
			await settled(tab.page);
			expect(await tab.page.locator("img[src=x]").count()).toBe(0);
		});
		it("has examples that all run", async () => {
			await open(tab, server, { ...session, view: "sql" });
			await tab.page.getByRole("button", { name: "Queries" }).click();
			const examples = tab.page.locator(".sql-table", { hasText: "Examples" }).locator("li button");
			const all = await examples.count();
			expect(all).toBeGreaterThan(4);
			for (let i = 0; i < all; i += 1) {
				await examples.nth(i).click();
				await settled(tab.page);
				await expect.poll(() => tab.page.locator(".sql-facts").innerText()).toMatch(/\d rows/);
				expect(await tab.page.locator(".sql-error").count()).toBe(0);
			}
		});
		it("has an example that counts a call in each bucket that it lasts into", async () => {
			const about = (await (await ask(server, `/sessions/${session.s}`)).json()) as {
				started_at_ns: number;
				span: { from: number; to: number };
			};
			const example = EXAMPLES.find(({ sql }) => sql.includes("in_progress"));
			const shown = { start: about.started_at_ns, span: about.span, filter: {}, buckets: 300 };
			const of = (statement: string) => expand(statement, shown).text;
			const [made] = await sql(of(`SELECT sum(in_progress * $bucket) AS ns FROM (${example?.sql})`));
			const [all] = await sql(
				of("SELECT sum(least(ts_ns + dur_ns, $to) - greatest(ts_ns, $from))::DOUBLE AS ns FROM syscalls"),
			);
			expect(Number(all?.["ns"])).toBeGreaterThan(0);
			expect(Number(made?.["ns"]) / Number(all?.["ns"])).toBeCloseTo(1, 6);
		});
		it("makes panels that stay", async () => {
			await open(tab, server, { ...session, view: "panels" });
			await expect.poll(text).toContain("Default panels");
			expect(await tab.page.locator(".panels > .panel").count()).toBeGreaterThan(4);
			expect(await tab.page.locator('[role="alert"]').count()).toBe(0);
			await open(tab, server, { ...session, view: "sql", sql: statement, form: "line" });
			await tab.page.getByLabel("Name of the query").fill(`Calls ${HOSTILE}`);
			await tab.page.getByRole("button", { name: "Add as panel" }).click();
			await expect.poll(text).toContain("is on the page of panels");
			await tab.page.getByRole("link", { name: "Open panels" }).click();
			await expect.poll(() => colored(".panels")).toBeGreaterThan(50);
			await tab.page.reload();
			await expect.poll(text).toContain(`Calls ${HOSTILE}`);
			expect(await tab.page.locator("img[src=x]").count()).toBe(0);
			const [file] = await Promise.all([
				tab.page.waitForEvent("download"),
				tab.page.getByRole("button", { name: "Download" }).click(),
			]);
			const kept = join(dir, "panels.json");
			await file.saveAs(kept);
			await tab.page.getByRole("link", { name: "Edit" }).click();
			await expect.poll(() => tab.page.locator(".sql-editor textarea").inputValue()).toBe(statement);
			await tab.page.goBack();
			await tab.page.getByRole("button", { name: /Remove from the board/ }).click();
			await expect.poll(text).toContain("Default panels");
			await tab.page.locator('input[type="file"]').setInputFiles(kept);
			await expect.poll(text).toContain("1 queries from panels.json");
			await expect.poll(text).toContain(`Calls ${HOSTILE}`);
		});
		it("shows the panels that the user keeps as files of SQL, over a table of the user's", async () => {
			const rows = join(dir, "shops.csv");
			writeFileSync(rows, "shop,orders\nnorth,3\nsouth,4\n");
			execFileSync(FATHOM, ["import", rows, "--into", join(dir, "work.fathom"), "--table", "shops"], {
				stdio: "ignore",
			});
			const mine = join(dir, "mine");
			for (const folder of [mine, join(mine, "panels")]) mkdirSync(folder, { mode: 0o755 });
			const head = `-- title: Orders ${HOSTILE}\n-- draw: bar\n-- x: shop\n-- y: orders\n`;
			writeFileSync(join(mine, "panels", "orders.sql"), `${head}FROM shops`, { mode: 0o644 });
			writeFileSync(join(mine, "panels", "rows.sql"), "-- title: Rows\nFROM shops ORDER BY shop", { mode: 0o644 });
			const own = await serve(dir, 0, ["--extensions", mine]);
			const page = await openTab(browser, own);
			try {
				await open(page, own, { ...session, view: "panels" });
				const team = page.page.locator(".panels-team");
				await expect.poll(() => team.locator(".panel").count()).toBe(2);
				await expect.poll(() => team.innerText()).toContain(`Orders ${HOSTILE}`);
				await expect.poll(() => team.locator(".panels-table").innerText()).toMatch(/north\s+3\s+south\s+4/);
				await expect.poll(() => team.locator(".result-plot canvas").count()).toBeGreaterThan(0);
				expect(await page.page.locator('img[src=x], [role="alert"]').count()).toBe(0);
				await team.getByRole("button", { name: "Copy to my panels" }).click();
				await expect.poll(() => page.page.locator(".panels").first().locator(".panel").count()).toBe(2);
				expect(page.faults).toEqual([]);
			} finally {
				await page.close();
				await own.stop();
			}
		});
		it("names a keyword that stands for a column", async () => {
			await open(tab, server, { ...session, view: "sql", sql: "SELECT rid, offset FROM syscalls" });
			await expect.poll(() => tab.page.locator(".sql-error").innerText()).toContain("file_offset");
		});
	});

	describe("sharing", () => {
		it("copies links and commands without the token", async () => {
			await tab.context.grantPermissions(["clipboard-read", "clipboard-write"]);
			await open(tab, server, { ...session, view: "devices" });
			for (const name of ["Copy link", "Copy command"]) {
				await tab.page.locator(".share > summary").click();
				await tab.page.getByRole("button", { name }).click();
				await expect.poll(() => tab.page.evaluate(() => navigator.clipboard.readText())).toContain("view=devices");
				expect(await tab.page.evaluate(() => navigator.clipboard.readText())).not.toContain(server.token);
				await tab.page.locator(".share > summary").click();
			}
		});
		it("copies a picture with its caption", async () => {
			await tab.context.grantPermissions(["clipboard-read", "clipboard-write"]);
			await open(tab, server, { ...session, view: "devices" });
			await tab.page.locator(".share > summary").click();
			await tab.page.getByRole("button", { name: "Copy as picture" }).click();
			await expect.poll(text).toContain("Picture copied");
			const size = await tab.page.evaluate(async () => {
				const [item] = await navigator.clipboard.read();
				const image = await createImageBitmap(await (item as ClipboardItem).getType("image/png"));
				return [image.width, image.height];
			});
			expect(size).toEqual([2400, 1350]);
		});
		it("saves what was shown as a page that needs no server", async () => {
			await open(tab, server, { ...session, view: "timeline" });
			await expect.poll(() => colored(".board")).toBeGreaterThan(50);
			await tab.page.getByRole("link", { name: "Devices", exact: true }).click();
			await settled(tab.page);
			await tab.page.locator(".share > summary").click();
			const [file] = await Promise.all([
				tab.page.waitForEvent("download"),
				tab.page.getByRole("button", { name: "Save as page" }).click(),
			]);
			const kept = join(dir, "shared.html");
			await file.saveAs(kept);
			expect(readFileSync(kept, "utf8")).not.toContain(server.token);
			await openSaved(kept, async (page) => {
				await expect.poll(() => page.locator(".tabs a").allInnerTexts()).toEqual(["Timeline", "Devices"]);
				expect(await page.locator('[role="alert"]').count()).toBe(0);
				await page.getByRole("link", { name: "Timeline", exact: true }).click();
				await settled(page);
				await page.goBack();
				await expect.poll(() => page.locator(".devices-table").count()).toBe(1);
			});
		});
		it("exports a session as a page of which every view is complete", { timeout: 240_000 }, async () => {
			const kept = join(dir, "exported.html");
			const work = join(dir, "work.fathom");
			execFileSync(FATHOM, ["export", work, "--format", "page", "-o", kept]);
			await openSaved(kept, async (page) => {
				const names = await page.locator(".tabs a").allInnerTexts();
				expect(names.length).toBeGreaterThan(6);
				for (const name of names.filter((name) => name !== "Request")) {
					await page.getByRole("link", { name, exact: true }).click();
					await settled(page);
					const alerts = await page.locator('[role="alert"]').allInnerTexts();
					expect(alerts, name).toEqual([]);
				}
				await page.getByRole("link", { name: "Table", exact: true }).click();
				await settled(page);
				await page.getByRole("button", { name: "slowest first" }).click();
				await page.locator(".grid-row").first().click();
				await page.getByRole("link", { name: "Details" }).click();
				await expect.poll(() => page.locator("body").innerText()).toContain("Meanwhile");
				expect(await page.locator('[role="alert"]').count()).toBe(0);
			});
		});
	});
});
