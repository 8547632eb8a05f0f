// What an application says of itself, in a browser: its spans, imported into a recording, and the calls of library
// functions, recorded with --library. Everything is compared with SQL.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { broken } from "./axe.ts";
import { FATHOM, open, settled } from "./harness.ts";
import { rowsOf } from "./sql.ts";
import { dir, HOSTILE, onStage, openSaved, server, tab, text } from "./stage.ts";

/** Writes spans of requests that read, write and sync, one of them with a hostile name, and one in another. */
const APPLICATION = `
cat > app.py <<'PYTHON'
import json, os, threading, time
spans = []
def span(name, work, parent=None, trace=None):
    number = len(spans) + 1
    one = {"traceId": trace or "%032x" % number, "spanId": "%016x" % number, "name": name, "kind": 2}
    if parent: one["parentSpanId"] = parent
    one["attributes"] = [{"key": "thread.id", "value": {"intValue": threading.get_native_id()}}]
    spans.append(one)
    one["startTimeUnixNano"] = str(time.time_ns())
    work(one)
    one["endTimeUnixNano"] = str(time.time_ns())
    if number % 7 == 3: one["status"] = {"code": 2}
fd = os.open("shop.bin", os.O_RDWR | os.O_CREAT)
def insert(one):
    os.pwrite(fd, b"x" * 3000, 0)
    os.fdatasync(fd)
def checkout(one):
    os.pread(fd, 500, 0)
    span("INSERT item", insert, one["spanId"], one["traceId"])
    time.sleep(0.002)
def home(one):
    for name in ("a", "b", "c"): os.path.exists(name)
for i in range(12):
    span("POST /checkout", checkout)
    span("GET /", home)
span("${HOSTILE}", home)
process = {"attributes": [{"key": "process.pid", "value": {"intValue": os.getpid()}},
                          {"key": "service.name", "value": {"stringValue": "shop"}}]}
with open("../spans.json", "w") as file:
    json.dump({"resourceSpans": [{"resource": process, "scopeSpans": [{"spans": spans}]}]}, file)
PYTHON
python3 app.py
`;

/** Programs that read and write through the C library. */
const LIBRARY = `
seq 20000 > numbers.txt
sed -n '/7/p' numbers.txt > sevens.txt
sort -r numbers.txt > sorted.txt
`;

onStage(
	"spans and library calls",
	[
		["shop", APPLICATION, ["--layers", "all"]],
		["library", LIBRARY, ["--library", "stdio"]],
	],
	() => {
		beforeAll(() => {
			execFileSync(FATHOM, ["import", "--into", join(dir, "shop.fathom"), join(dir, "spans.json")], {
				stdio: "ignore",
			});
		});
		const shop = { s: "shop.fathom", view: "spans" };
		const sql = (statement: string, id = "shop.fathom") => rowsOf(server, id, statement);
		const rows = (within: string) => tab.page.locator(`${within} tbody tr`);
		const main = () => tab.page.locator("main").innerText();

		describe("the view of spans", () => {
			it("has a tab only where there are spans", async () => {
				await open(tab, server, { s: "shop.fathom" });
				expect(await tab.page.getByRole("link", { name: "Spans" }).count()).toBe(1);
				await open(tab, server, { s: "library.fathom" });
				expect(await tab.page.getByRole("link", { name: "Spans" }).count()).toBe(0);
				await open(tab, server, { ...shop, s: "library.fathom" });
				expect(await text()).toContain("fathom import --into library.fathom");
			});

			it("lists the names with the counts of SQL, the one with most time first", async () => {
				await open(tab, server, { ...shop, calls: "own" });
				const names = await sql("FROM by_span_name");
				expect(names.length).toBe(4);
				expect(await rows(".spans-names").count()).toBe(names.length);
				for (const [i, name] of names.entries()) {
					const cells = await rows(".spans-names").nth(i).locator("td").allInnerTexts();
					expect(cells[0]).toContain(String(name["name"]));
					expect(Number(cells[1])).toBe(Number(name["spans"]));
					expect(Number(cells[2])).toBe(Number(name["errors"]));
					expect(Number(cells[8])).toBe(Number(name["calls"]));
					// The exact duration is below the pointer.
					const exact = await rows(".spans-names").nth(i).locator("td").nth(7).getAttribute("title");
					expect(exact?.replace(/\D/g, "")).toBe(String(name["calls_ns"]));
				}
			});

			it("adds the calls of inner spans to the spans around them", async () => {
				await open(tab, server, shop);
				const [checkout] = await sql(
					`SELECT count(*) AS calls, sum(dur_ns) AS ns FROM span_calls
					 WHERE span_name IN ('POST /checkout', 'INSERT item')`,
				);
				const row = rows(".spans-names").filter({ hasText: "POST /checkout" });
				const cells = row.locator("td");
				expect(Number(await cells.nth(8).innerText())).toBe(Number(checkout?.["calls"]));
				expect((await cells.nth(7).getAttribute("title"))?.replace(/\D/g, "")).toBe(String(checkout?.["ns"]));
				// The parts of the bar add up to it, and the layers to the calls.
				const bar = row.locator(".span-bar");
				expect(await bar.getAttribute("title")).toContain("outside of calls");
				expect(await bar.getAttribute("title")).toContain("device");
			});

			it("leads from a name to its slowest spans, from a span to its calls, and on to one of them", async () => {
				await open(tab, server, shop);
				await rows(".spans-names").filter({ hasText: "POST /checkout" }).click();
				await settled(tab.page);
				const slowest = await sql(
					`SELECT trace_id, span_id, dur_ns, ts_ns - (SELECT started_at_ns FROM session) AS t, tid
					 FROM spans WHERE name = 'POST /checkout' ORDER BY dur_ns DESC`,
				);
				expect(await rows(".spans-slowest").count()).toBe(slowest.length);
				const second = slowest[1];
				await rows(".spans-slowest").nth(1).click();
				await settled(tab.page);
				expect(new URL(tab.page.url()).searchParams.get("span")).toBe(second?.["span_id"]);
				const calls = await sql(
					`SELECT syscall, span_name FROM span_calls WHERE trace_id = '${second?.["trace_id"]}' ORDER BY ts_ns`,
				);
				expect(calls.length).toBeGreaterThanOrEqual(3);
				await expect.poll(() => rows(".spans-calls").count()).toBe(calls.length);
				const listed = await tab.page.locator(".spans-calls tbody tr td:nth-child(2)").allInnerTexts();
				expect(listed.map((name) => name.trim())).toEqual(calls.map((call) => call["syscall"]));
				expect(await tab.page.locator(".spans-trace li").allInnerTexts()).toHaveLength(2);
				// Its thread at its time.
				const link = await tab.page.getByRole("link", { name: "Show in Timeline" }).getAttribute("href");
				const there = new URL(link ?? "", server.origin).searchParams;
				expect(Number(there.get("from"))).toBeLessThan(Number(second?.["t"]));
				expect(Number(there.get("to"))).toBeGreaterThan(Number(second?.["t"]) + Number(second?.["dur_ns"]));
				expect(JSON.parse(there.get("f") ?? "{}")).toEqual({ tid: [Number(second?.["tid"])] });
				await tab.page.locator(".spans-calls").getByRole("link", { name: "fdatasync" }).click();
				await settled(tab.page);
				expect(await main()).toContain("Through the layers");
			});

			it("counts the spans of the window", async () => {
				const [span] = await sql(
					"SELECT ts_ns - (SELECT started_at_ns FROM session) AS t FROM spans WHERE name = 'GET /' ORDER BY ts_ns LIMIT 1 OFFSET 3",
				);
				const t = Number(span?.["t"]);
				await open(tab, server, { ...shop, from: t - 1, to: t + 1 });
				expect(await rows(".spans-names").count()).toBe(1);
				expect(await rows(".spans-names").locator("td").nth(1).innerText()).toBe("1");
			});

			it("keeps to the rules of accessibility", async () => {
				await open(tab, server, shop);
				expect(await broken(tab)).toEqual([]);
			});
		});

		it("are strips above the calls of the timeline, and lead to the span", async () => {
			const [span] = await sql(
				`SELECT span_id, tid, dur_ns, ts_ns - (SELECT started_at_ns FROM session) AS t
				 FROM spans WHERE name = 'INSERT item' ORDER BY dur_ns DESC LIMIT 1`,
			);
			const [t, dur] = [Number(span?.["t"]), Number(span?.["dur_ns"])];
			const f = JSON.stringify({ tid: [Number(span?.["tid"])] });
			await open(tab, server, { s: "shop.fathom", view: "timeline", from: t, to: t + dur, f });
			const board = await tab.page.locator(".board").boundingBox();
			const [x, y] = [(board?.x ?? 0) + 700, (board?.y ?? 0) + 46];
			await tab.page.mouse.move(x, y);
			await expect.poll(() => tab.page.locator(".tip").innerText()).toContain("INSERT item");
			await tab.page.mouse.click(x, y);
			await expect.poll(() => new URL(tab.page.url()).searchParams.get("span")).toBe(span?.["span_id"]);
			await settled(tab.page);
			expect(await main()).toContain("Slowest: INSERT item");
			// Without the strip there is nothing at its place.
			await open(tab, server, { s: "shop.fathom", view: "timeline", from: t, to: t + dur, f, spans: "0" });
			await tab.page.mouse.move(x, y);
			await tab.page.waitForTimeout(300);
			expect(await tab.page.locator(".tip", { hasText: "click: its calls" }).count()).toBe(0);
		});

		describe("library calls", () => {
			const session = { s: "library.fathom" };

			it("are named in the view of a request, with the other system calls that they made", async () => {
				const [call] = await sql(
					`SELECT user_call, function, u.size, u.dur_ns, count(*) AS calls, min(rid) AS rid
					 FROM user_calls AS u JOIN syscalls USING (user_call)
					 WHERE u.size IS NOT NULL GROUP BY ALL HAVING count(*) > 1 ORDER BY user_call LIMIT 1`,
					"library.fathom",
				);
				await open(tab, server, { ...session, view: "request", rid: Number(call?.["rid"]) });
				expect(await main()).toContain(`Made by library call ${call?.["function"]}`);
				const panel = tab.page.locator("#library-call");
				const said = (await panel.innerText()).replace(/[\s\u202f]+/g, "");
				expect(said).toContain(`Itmade${call?.["calls"]}systemcalls`);
				expect(said).toContain(`bytesrequested${call?.["size"]}`);
				expect(said).toContain(`duration${call?.["dur_ns"]}ns`);
				const made = await sql(
					`SELECT syscall FROM syscalls WHERE user_call = ${call?.["user_call"]} ORDER BY ts_ns`,
					"library.fathom",
				);
				const listed = await panel.locator("tbody tr td:nth-child(2)").allInnerTexts();
				expect(listed.map((name) => name.trim())).toEqual(made.map((row) => row["syscall"]));
				await panel.locator("tbody a").first().click();
				await settled(tab.page);
				expect(new URL(tab.page.url()).searchParams.get("rid")).not.toBe(String(call?.["rid"]));
				expect(await main()).toContain(`Made by library call ${call?.["function"]}`);
			});

			it("are summed up by function in the view of layers, with a way to their system calls", async () => {
				await open(tab, server, { ...session, view: "layers" });
				const functions = await sql("FROM by_user_call ORDER BY total_ns DESC, function", "library.fathom");
				const table = tab.page.locator(".layers-functions tbody tr");
				expect(await table.count()).toBe(functions.length);
				const first = functions[0];
				const cells = table.first().locator("td");
				expect(await cells.first().innerText()).toContain(String(first?.["function"]));
				expect((await cells.nth(1).getAttribute("title"))?.split(",")[0]?.replace(/\D/g, "")).toBe(
					String(first?.["calls"]),
				);
				expect((await cells.nth(4).getAttribute("title"))?.replace(/\D/g, "")).toBe(String(first?.["total_ns"]));
				const writer = functions.find((f) => Number(f["syscalls"]) > 0);
				await table
					.filter({ hasText: String(writer?.["function"]) })
					.getByRole("link")
					.first()
					.click();
				await settled(tab.page);
				const [all] = await sql(
					`SELECT least(100, count(*)) AS n FROM syscalls JOIN user_calls USING (user_call)
					 WHERE function = '${writer?.["function"]}' AND library = '${writer?.["library"]}'`,
					"library.fathom",
				);
				await expect.poll(main).toContain(`${all?.["n"]} row`);
				expect(await broken(tab)).toEqual([]);
			});

			it("are not mentioned where none were recorded", async () => {
				await open(tab, server, { s: "shop.fathom", view: "layers" });
				expect(await main()).not.toContain("Library calls");
				const [call] = await sql("SELECT rid FROM syscalls LIMIT 1");
				await open(tab, server, { s: "shop.fathom", view: "request", rid: Number(call?.["rid"]) });
				expect(await main()).not.toContain("ibrary call");
			});
		});

		it("are in a session that was exported as a page", { timeout: 240_000 }, async () => {
			const exported = (name: string) => {
				const kept = join(dir, `${name}.html`);
				execFileSync(FATHOM, ["export", join(dir, `${name}.fathom`), "--format", "page", "-o", kept]);
				return kept;
			};
			const [slowest] = await sql(
				"SELECT trace_id, span_id FROM spans WHERE name = 'POST /checkout' ORDER BY dur_ns DESC LIMIT 1",
			);
			const [inside] = await sql(
				`SELECT count(*)::DOUBLE AS calls FROM span_calls WHERE trace_id = '${slowest?.["trace_id"]}'`,
			);
			await openSaved(exported("shop"), async (page) => {
				await page.getByRole("link", { name: "Spans", exact: true }).click();
				await page.locator(".spans-names tr", { hasText: "POST /checkout" }).click();
				await settled(page);
				expect(await page.locator('[role="alert"]').allInnerTexts()).toEqual([]);
				await expect.poll(() => page.locator(".spans-names tbody tr").count()).toBe(4);
				await expect.poll(() => page.locator(".spans-slowest tbody tr").count()).toBe(12);
				await expect
					.poll(() => page.locator(".spans-one .grid-row, .spans-one tbody tr").count())
					.toBe(Number(inside?.["calls"]));
				expect(await page.locator("img[src=x]").count()).toBe(0);
			});
			await openSaved(exported("library"), async (page) => {
				await page.getByRole("link", { name: "Layers", exact: true }).click();
				await settled(page);
				await expect.poll(() => page.locator(".layers-functions").innerText()).toContain("fread");
				expect(await page.locator('[role="alert"]').allInnerTexts()).toEqual([]);
			});
		});
	},
);
