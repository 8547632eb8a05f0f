// The views about files, threads, layers, devices and comparisons, in a browser over sessions that were recorded.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ask, end, jumped, jumps, open, openTab, recording, settled } from "./harness.ts";
import { colored, SLOWER, session, sql, WORK } from "./recorded.ts";
import { browser, dir, HOSTILE, onStage, server, tab, text } from "./stage.ts";

onStage(
	"the views",
	[
		["work", WORK, ["--layers", "all"]],
		["slower", SLOWER, ["--layers", "all"]],
		["plain", "echo hello > x; cat x", ["--layers", "syscall"]],
	],
	() => {
		/** The id of a file by the end of its path. */
		async function fileId(end: string): Promise<number> {
			const [row] = await sql(`SELECT file_id FROM files WHERE path LIKE '%${end}' LIMIT 1`);
			return Number(row?.["file_id"]);
		}

		const isPng = async (panel: string) => {
			const saved = tab.page.waitForEvent("download");
			await tab.page.locator(panel).getByRole("button", { name: "PNG" }).first().click();
			const path = await (await saved).path();
			const bytes = readFileSync(path);
			expect(bytes.subarray(1, 4).toString()).toBe("PNG");
			expect(bytes.length).toBeGreaterThan(3000);
		};

		it("come without anything jumping", async () => {
			for (const view of [
				"overview",
				"flame",
				"timeline",
				"table",
				"file",
				"threads",
				"layers",
				"devices",
				"sql",
				"panels",
			]) {
				await open(tab, server, { ...session, view });
				await tab.page.waitForTimeout(300);
				const moved = (await jumped(tab.page)).join("; ");
				expect(await jumps(tab.page), `${view}: ${moved}`).toBeLessThan(0.02);
			}
		});

		describe("the states of threads in the timeline", () => {
			it("have a legend whose shares are those of SQL, and tell of a wait below the pointer", async () => {
				// The longest wait of a thread with calls; the window is a part of it and more.
				const [wait] = await sql(
					`SELECT tid, reason, ts_ns - (SELECT started_at_ns FROM session) AS t, dur_ns AS dur FROM waits
					 WHERE reason <> 'cpu' AND tid IN (SELECT tid FROM syscalls) AND run_queue_ns < dur_ns / 4
					 ORDER BY dur_ns DESC LIMIT 1`,
				);
				const [t, dur] = [Number(wait?.["t"]), Number(wait?.["dur"])];
				const from = Math.round(t + dur / 4);
				const to = Math.round(t + dur / 2);
				const tid = Number(wait?.["tid"]);
				const f = JSON.stringify({ tid: [tid] });
				await open(tab, server, { ...session, view: "timeline", from, to, who: "all", f });
				const words = String(wait?.["reason"]).replaceAll("_", " ");
				await expect.poll(() => tab.page.locator(".states-key").innerText()).toContain(`blocked: ${words} 100 %`);
				const board = await tab.page.locator(".board").boundingBox();
				// The strip is below the calls of the only lane.
				for (let y = 26; y < 140; y += 3) {
					await tab.page.mouse.move(900, (board?.y ?? 0) + y);
					if ((await tab.page.locator(".tip", { hasText: `blocked: ${words}` }).count()) > 0) break;
				}
				await expect.poll(() => tab.page.locator(".tip").innerText()).toContain(`blocked: ${words}`);
			});
			it("can be hidden, and are absent where none were recorded", async () => {
				await open(tab, server, { ...session, view: "timeline" });
				await expect.poll(() => tab.page.locator(".states-key").count()).toBe(1);
				await tab.page.getByRole("button", { name: "States" }).click();
				await expect.poll(() => tab.page.locator(".states-key").count()).toBe(0);
				await open(tab, server, { s: "plain.fathom", view: "timeline" });
				expect(await tab.page.getByRole("button", { name: "States" }).isDisabled()).toBe(true);
				expect(await tab.page.locator(".states-key").count()).toBe(0);
			});
		});
		describe("the rows of layers in the timeline", () => {
			const board = ".board";
			it("stand below the calls, at the times of the table", async () => {
				const [call] = await sql(
					`SELECT rid, min(syscalls.ts_ns)::DOUBLE AS t, min(syscalls.dur_ns)::DOUBLE AS dur, min(tid) AS tid,
					count(DISTINCT layer) - 1 AS layers
					FROM syscalls JOIN slices USING (rid) WHERE syscall = 'fsync' GROUP BY rid ORDER BY dur DESC LIMIT 1`,
				);
				const about = (await (await ask(server, "/sessions/work.fathom")).json()) as { started_at_ns: number };
				const t = Number(call?.["t"]) - about.started_at_ns;
				const dur = Number(call?.["dur"]);
				const window = { from: Math.max(0, t - dur * 0.5), to: t + dur * 1.5 };
				const where = { ...session, view: "timeline", ...window, f: JSON.stringify({ tid: [Number(call?.["tid"])] }) };
				await open(tab, server, where);
				const high = () => tab.page.locator(".board-lanes").evaluate((e) => e.getBoundingClientRect().height);
				const before = await high();
				await tab.page.keyboard.press("l");
				await expect.poll(() => tab.page.url()).toContain("layers=1");
				await settled(tab.page);
				// A row for each layer that was seen below calls in sight.
				await expect.poll(high).not.toBe(before);
				const box = await tab.page.locator(board).boundingBox();
				if (!box) throw new Error("no board");
				// Somewhere below the calls there is a visit, which tells its layer and opens its call.
				const tip = tab.page.locator(".tip");
				let found = false;
				for (let y = 26 + 32 + 6; y < 26 + 32 + 6 * 18 && !found; y += 6) {
					for (let x = 260; x < box.width - 40 && !found; x += 9) {
						await tab.page.mouse.move(box.x + x, box.y + y);
						if ((await tip.count()) === 0) continue;
						found = /own time[\s\S]*start/.test(await tip.innerText());
					}
				}
				expect(found).toBe(true);
				await tab.page.mouse.down();
				await tab.page.mouse.up();
				await expect.poll(() => tab.page.url()).toContain("rid=");
				await tab.page.keyboard.press("l");
				await expect.poll(() => tab.page.url()).not.toContain("layers=1");
			});
			it("cannot be asked for where no layer was recorded", async () => {
				await open(tab, server, { s: "plain.fathom", view: "timeline" });
				const button = tab.page.getByRole("button", { name: "Layers" });
				expect(await button.isDisabled()).toBe(true);
				expect(await button.getAttribute("title")).toContain("--layers all");
				await tab.page.keyboard.press("l");
				expect(tab.page.url()).not.toContain("layers=1");
			});
		});

		describe("file", () => {
			it("shows the file with the most bytes, with the figures that SQL has", async () => {
				await open(tab, server, { ...session, view: "file", order: "bytes" });
				await expect.poll(text).toContain("data.bin");
				await expect.poll(() => colored(".file-plot")).toBeGreaterThan(100);
				const id = await fileId("/data.bin");
				const [sums] = await sql(
					`SELECT sum(bytes) FILTER (syscall LIKE '%read%')::DOUBLE AS r, sum(bytes) FILTER (syscall LIKE '%write%')::DOUBLE AS w
				FROM syscalls WHERE file_id = ${id} AND file_offset IS NOT NULL`,
				);
				const figure = async (at: number) => {
					const title = await tab.page.locator(".file-figures > div").nth(at).getAttribute("title");
					return Number((title ?? "").replace(/.*?: /, "").replace(/\D/g, ""));
				};
				await expect.poll(() => figure(0)).toBe(Number(sums?.["r"]));
				await expect.poll(() => figure(3)).toBe(Number(sums?.["w"]));
				// Written once from end to end; read more than once.
				expect(await figure(5)).toBe(0);
				expect(await figure(2)).toBe(Number(sums?.["r"]) - 400 * 4096);
			});
			it("tells how much is sequential, of many accesses too", async () => {
				await open(tab, server, { ...session, view: "file", file: await fileId("/many.bin") });
				await expect.poll(() => tab.page.locator(".file-plot .note").innerText()).toContain("zoom in for single ones");
				const verdict = tab.page.locator(".file-verdict");
				await expect.poll(() => verdict.innerText()).toBe("Writes 100 % sequential in one pass");
			});
			it("shows the page faults of a mapped file", async () => {
				const id = await fileId("/mapped.bin");
				const [row] = await sql(
					`SELECT count(*)::DOUBLE AS n, count(*) FILTER (access = 'write')::DOUBLE AS w FROM faults WHERE file_id = ${id}`,
				);
				expect(Number(row?.["n"])).toBeGreaterThan(2);
				await open(tab, server, { ...session, view: "file", file: id });
				const figure = tab.page.locator(".file-figures > div").filter({ hasText: "Page faults" }).locator("dd");
				await expect.poll(() => figure.innerText()).toBe(String(row?.["n"]));
				await expect.poll(() => colored(".file-plot")).toBeGreaterThan(20);
				await tab.page.keyboard.press("]");
				await expect.poll(() => tab.page.url()).toContain("rid=");
			});
			it("shows a part of the file by a drag, by keys and by its address; back undoes it", async () => {
				await open(tab, server, { ...session, view: "file", file: await fileId("/data.bin") });
				await expect.poll(() => colored(".file-plot")).toBeGreaterThan(100);
				const plot = await tab.page.locator(".file-plot .u-over").boundingBox();
				if (!plot) throw new Error("no plot");
				const { x, y, width, height } = plot;
				await tab.page.mouse.move(x + width / 2, y + height * 0.25);
				await tab.page.mouse.down();
				await tab.page.mouse.move(x + width / 2 + 5, y + height * 0.75, { steps: 8 });
				await tab.page.mouse.up();
				await expect.poll(() => tab.page.url()).toMatch(/part=\d+-\d+/);
				// Up and down only: the window of time is as it was.
				expect(tab.page.url()).not.toContain("from=");
				const part = () => /part=(\d+)-(\d+)/.exec(tab.page.url())?.slice(1).map(Number) ?? [];
				const [low = 0, high = 0] = part();
				const size = 400 * 4096;
				expect(Math.abs(low / size - 0.25)).toBeLessThan(0.03);
				expect(Math.abs(high / size - 0.75)).toBeLessThan(0.03);
				await settled(tab.page);
				const [row] = await sql(
					`SELECT count(*)::DOUBLE AS n FROM syscalls WHERE file_id = ${await fileId("/data.bin")} AND bytes > 0
					AND file_offset < ${high} AND file_offset + bytes > ${low}`,
				);
				const note = () => tab.page.locator(".file-plot .note").innerText();
				await expect.poll(async () => Number((await note()).split(" acc")[0]?.replace(/\D/g, ""))).toBe(row?.["n"]);
				await tab.page.keyboard.press("W");
				await expect.poll(() => (part()[1] ?? 0) - (part()[0] ?? 0)).toBeLessThan((high - low) * 0.6);
				await tab.page.goBack();
				await expect.poll(part).toEqual([low, high]);
				await tab.page.keyboard.press("O");
				await expect.poll(() => tab.page.url()).not.toContain("part=");
			});
			it("finds files by a part of their path, and keeps the choice in the address", async () => {
				await open(tab, server, { ...session, view: "file" });
				await tab.page.keyboard.press("o");
				await tab.page.keyboard.type("onerror");
				await expect.poll(() => tab.page.locator(".picker-list li").count()).toBe(1);
				await tab.page.keyboard.press("Enter");
				await expect.poll(() => tab.page.url()).toContain("file=");
				await expect.poll(() => tab.page.locator(".file-head").innerText()).toContain(HOSTILE);
				expect(await tab.page.locator("img[src=x]").count()).toBe(0);
				const address = tab.page.url();
				await tab.page.reload();
				await settled(tab.page);
				expect(tab.page.url()).toBe(address);
				await expect.poll(() => tab.page.locator(".file-head").innerText()).toContain(HOSTILE);
			});
			it("opens the request of a point, by a click and by keys", async () => {
				await open(tab, server, { ...session, view: "file", file: await fileId("/data.bin") });
				await expect.poll(() => colored(".file-plot")).toBeGreaterThan(100);
				await tab.page.keyboard.press("]");
				await expect.poll(() => tab.page.url()).toContain("rid=");
				await expect.poll(text).toContain("Through the layers");
				const first = tab.page.url();
				await tab.page.keyboard.press("]");
				await expect.poll(() => tab.page.url()).not.toBe(first);
				await tab.page.goto("about:blank");
				await open(tab, server, { ...session, view: "file", file: await fileId("/data.bin") });
				const plot = await tab.page.locator(".file-plot .u-over").boundingBox();
				if (!plot) throw new Error("no plot");
				// Somewhere on the way up of the sequential write there is a point.
				for (let i = 0; i < 400 && !tab.page.url().includes("rid="); i += 1) {
					await tab.page.mouse.move(
						plot.x + ((i * 7) % plot.width),
						plot.y + plot.height * (1 - ((i * 7) % plot.width) / plot.width),
					);
					if (await tab.page.locator(".tip").count())
						await tab.page.mouse.click(
							plot.x + ((i * 7) % plot.width),
							plot.y + plot.height * (1 - ((i * 7) % plot.width) / plot.width),
						);
				}
				await tab.page.waitForTimeout(100);
				expect(tab.page.url()).toContain("rid=");
			});
			it("zooms by a drag and colors by what is chosen", async () => {
				await open(tab, server, { ...session, view: "file", file: await fileId("/data.bin") });
				await tab.page.getByRole("button", { name: "latency" }).click();
				await expect.poll(() => tab.page.url()).toContain("color=latency");
				const plot = await tab.page.locator(".file-plot .u-over").boundingBox();
				if (!plot) throw new Error("no plot");
				await tab.page.mouse.move(plot.x + plot.width * 0.2, plot.y + 30);
				await tab.page.mouse.down();
				await tab.page.mouse.move(plot.x + plot.width * 0.5, plot.y + 40, { steps: 4 });
				await tab.page.mouse.up();
				await expect.poll(() => tab.page.url()).toMatch(/from=\d/);
				await isPng(".file-plot");
			});
			it("says so when there is nothing in the window", async () => {
				await open(tab, server, {
					...session,
					view: "file",
					file: await fileId("/data.bin"),
					f: JSON.stringify({ error: ["EXDEV"] }),
				});
				await expect.poll(text).toContain("No reads, writes or page faults of this file in this window");
			});
		});

		describe("the overview", () => {
			it("says where the time went, above the fold", async () => {
				await open(tab, server, { ...session, view: "overview" });
				const [most] = await sql(
					`SELECT name, sum(dur_ns)::DOUBLE AS ns FROM (SELECT syscall AS name, dur_ns FROM syscalls
					UNION ALL SELECT 'page fault', dur_ns FROM faults) GROUP BY 1 ORDER BY ns DESC LIMIT 1`,
				);
				const row = tab.page.locator(".where-syscall tbody tr").first();
				await expect.poll(() => row.innerText()).toContain(String(most?.["name"]));
				await expect
					.poll(async () => Number(((await row.locator("td").nth(1).getAttribute("title")) ?? "").replace(/\D/g, "")))
					.toBe(Number(most?.["ns"]));
				for (const part of [".story", ".where-file", ".where-syscall", ".where-layer"]) {
					const box = await tab.page.locator(part).boundingBox();
					expect((box?.y ?? 1e9) + (box?.height ?? 0), part).toBeLessThan(800);
				}
			});
			it("leads from a row to its slowest call", async () => {
				await open(tab, server, { ...session, view: "overview" });
				const [slowest] = await sql(
					"SELECT rid::DOUBLE AS rid FROM syscalls WHERE syscall = 'openat' ORDER BY dur_ns DESC, rid LIMIT 1",
				);
				await tab.page.locator(".top-syscall tbody tr", { hasText: "openat" }).click();
				await tab.page.getByRole("menuitem", { name: "Slowest call" }).click();
				await expect.poll(() => tab.page.url()).toContain("view=request");
				expect(tab.page.url()).toContain(`rid=${slowest?.["rid"]}`);
			});
			it("leads from the longest call to its request, and closes menus by Escape", async () => {
				await open(tab, server, { ...session, view: "overview" });
				await tab.page.locator(".where-file .plain-name").first().press("Enter");
				await expect.poll(() => tab.page.getByRole("menu").count()).toBe(1);
				await tab.page.keyboard.press("ArrowDown");
				await tab.page.keyboard.press("Escape");
				await expect.poll(() => tab.page.getByRole("menu").count()).toBe(0);
				await tab.page.locator(".summary .leads", { hasText: "Longest call" }).getByRole("button").click();
				await expect.poll(() => tab.page.url()).toContain("view=request");
			});
			it("counts look-ups that found nothing apart from failures", async () => {
				await open(tab, server, { ...session, view: "overview" });
				const [errors] = await sql(
					"SELECT count(*) FILTER (call_failed(syscall, errno))::DOUBLE AS failed, count(errno)::DOUBLE AS n FROM syscalls",
				);
				const figure = tab.page.locator(".summary > div").filter({ hasText: "Failed calls" });
				await expect.poll(() => figure.getAttribute("title")).toMatch(/^\d/);
				const [failed, answers] = ((await figure.getAttribute("title")) ?? "").match(/[\d\u202f]+/g) ?? [];
				const number = (told: string | undefined) => Number((told ?? "").replace(/\D/g, ""));
				expect(number(failed)).toBe(errors?.["failed"]);
				expect(number(answers)).toBe(Number(errors?.["n"]) - Number(errors?.["failed"]));
				expect(number(answers)).toBeGreaterThan(0);
			});
			it("tells how the calls in a box differ from the others", async () => {
				await open(tab, server, { ...session, view: "overview" });
				const plot = tab.page.locator(".latency .u-over");
				await plot.scrollIntoViewIfNeeded();
				const box = await plot.boundingBox();
				if (!box) throw new Error("no plot");
				await tab.page.mouse.move(box.x + 2, box.y + 2);
				await tab.page.mouse.down();
				await tab.page.mouse.move(box.x + box.width - 2, box.y + box.height * 0.5, { steps: 5 });
				await tab.page.mouse.up();
				await expect.poll(() => tab.page.url()).toContain("box=");
				expect(tab.page.url()).not.toContain("from=");
				const [begin, end, least, most] = (new URL(tab.page.url()).searchParams.get("box") ?? "")
					.split(",")
					.map(Number);
				const about = (await (await ask(server, "/sessions/work.fathom")).json()) as { started_at_ns: number };
				const [inside] = await sql(
					`SELECT count(*)::DOUBLE AS n FROM syscalls WHERE ts_ns - ${about.started_at_ns} >= ${begin} AND ts_ns - ${about.started_at_ns} < ${end} AND dur_ns >= ${least} AND dur_ns < ${most}`,
				);
				expect(inside?.["n"]).toBeGreaterThan(0);
				const told = await ask(
					server,
					`/sessions/work.fathom/difference?begin=${begin}&end=${end}&least=${least}&most=${most}`,
				);
				const answer = (await told.json()) as { inside: { calls: number }; outside: { calls: number } };
				expect(answer.inside.calls).toBe(inside?.["n"]);
				await expect.poll(() => tab.page.locator(".difference").innerText()).toContain("In the box");
				await tab.page.locator(".difference .finding-links a").first().click();
				await expect.poll(() => tab.page.url()).toContain("view=request");
			});
		});

		describe("the flame graph", () => {
			it("adds up to the time of all calls and page faults, whatever the order of its levels", async () => {
				const { tableFromIPC } = await import("apache-arrow");
				const answer = await ask(server, "/sessions/work.fathom/flame");
				const rows = tableFromIPC(new Uint8Array(await answer.arrayBuffer())).toArray();
				const [all] = await sql(
					"SELECT sum(dur_ns)::DOUBLE AS ns FROM (SELECT dur_ns FROM syscalls UNION ALL SELECT dur_ns FROM faults)",
				);
				expect(rows.reduce((sum, row) => sum + Number(row.toJSON()["ns"]), 0)).toBe(all?.["ns"]);
				const { duration } = await import("../../src/lib/format.ts");
				await open(tab, server, { ...session, view: "flame" });
				await expect.poll(() => tab.page.locator(".flame-path").innerText()).toContain(duration(Number(all?.["ns"])));
				await tab.page.getByRole("button", { name: "Move call up a level" }).click();
				await expect.poll(() => tab.page.url()).toContain("levels=process%2Csyscall");
				await expect.poll(() => tab.page.locator(".flame-path").innerText()).toContain(duration(Number(all?.["ns"])));
			});
			it("zooms by a click on a frame and by keys, and back undoes it", async () => {
				await open(tab, server, { ...session, view: "flame" });
				await expect.poll(() => colored(".flame")).toBeGreaterThan(300);
				await tab.page.locator(".flame-below button").first().press("Enter");
				await expect.poll(() => tab.page.url()).toContain("focus=");
				const frames = await tab.page.locator(".flame-frames canvas").boundingBox();
				if (!frames) throw new Error("no frames");
				await tab.page.mouse.click(frames.x + 5, frames.y + 2 * 24 + 5);
				await expect.poll(() => tab.page.locator(".flame-path button").count()).toBe(3);
				await tab.page.goBack();
				await tab.page.goBack();
				await expect.poll(() => tab.page.url()).not.toContain("focus=");
				await isPng(".panel");
			});
		});

		describe("the list of sessions", () => {
			it("says what each session was", async () => {
				await open(tab, server, { view: "sessions" });
				const row = tab.page.locator("tr.link", { hasText: "slower.fathom" });
				await expect.poll(() => row.locator("canvas.spark").count()).toBe(1);
				expect(await row.locator("canvas.spark").getAttribute("aria-label")).toMatch(/sync .*%/);
				await expect.poll(() => row.innerText()).toMatch(/≈ [\d.]+ (µs|ms|s)/);
				await tab.page.getByRole("searchbox").fill("slow");
				await expect.poll(() => tab.page.locator("tr.link").count()).toBe(1);
			});
			it("sums them up, and leads to the sessions of a command", async () => {
				await open(tab, server, { view: "sessions" });
				const all = await tab.page.locator("tr.link").count();
				await tab.page.getByLabel("Sum by").selectOption("command");
				await expect.poll(() => tab.page.url()).toContain("by=command");
				const rows = tab.page.locator(".sums tbody tr");
				const sessions = async () =>
					(await rows.locator(".of-sessions").allInnerTexts()).reduce((sum, text) => sum + Number(text), 0);
				await expect.poll(sessions).toBe(all);
				const first = rows.first();
				const own = Number(await first.locator(".of-sessions").innerText());
				await first.getByRole("button").click();
				await expect.poll(() => tab.page.locator("tr.link").count()).toBe(own);
				await tab.page.getByLabel("Sum by").selectOption("device");
				await rows.first().getByRole("link").click();
				await expect.poll(() => tab.page.url()).toContain("view=devices");
			});
		});

		describe("threads", () => {
			it("sums up threads by name as SQL does", async () => {
				await open(tab, server, { ...session, view: "threads" });
				const [dd] = await sql("SELECT count(*)::DOUBLE AS n FROM syscalls WHERE comm = 'dd'");
				const row = tab.page.locator(".threads-names tbody tr", { hasText: "dd" }).first();
				await expect
					.poll(async () => Number(((await row.locator("td").nth(2).getAttribute("title")) ?? "").replace(/\D/g, "")))
					.toBe(Number(dd?.["n"]));
				await expect.poll(() => colored(".threads")).toBeGreaterThan(100);
			});
			it("draws lanes, marks a name and filters by it", async () => {
				await open(tab, server, { ...session, view: "threads" });
				await tab.page.getByRole("button", { name: "a lane each" }).click();
				await expect.poll(() => tab.page.locator(".thread-lane").count()).toBeGreaterThan(2);
				await tab.page.locator(".threads-names .plain-name", { hasText: "dd" }).first().click();
				await expect.poll(() => tab.page.url()).toContain("name=dd");
				await tab.page.getByRole("button", { name: "only this" }).first().click();
				await expect.poll(() => tab.page.locator(".chip").count()).toBe(1);
			});
		});

		describe("blame", () => {
			it("names who held whom up as SQL does, by process and by thread", async () => {
				const [process] = await sql(
					`SELECT sum(time_ns)::DOUBLE AS n FROM blame GROUP BY resource, kind, victim_pid, culprit_pid,
					if(victim_pid IS NULL, victim_comm, NULL), if(culprit_pid IS NULL, culprit_comm, NULL), culprit_tid IS NULL
					ORDER BY n DESC LIMIT 1`,
				);
				const [thread] = await sql("SELECT max(time_ns)::DOUBLE AS n FROM blame");
				const first = async () => {
					const cell = tab.page.locator(".blame-rows tbody tr").first().locator("td").nth(3);
					return Number(((await cell.getAttribute("title")) ?? "").replace(/\D/g, ""));
				};
				await open(tab, server, { ...session, view: "blame", idle: "shown" });
				await expect.poll(first).toBe(Number(process?.["n"]));
				await tab.page.getByRole("button", { name: "by thread" }).click();
				await expect.poll(first).toBe(Number(thread?.["n"]));
				const all = await tab.page.locator(".blame-rows tbody tr").count();
				const choice = tab.page.getByRole("combobox", { name: "Resource" });
				const last = await choice.locator("option").last().getAttribute("value");
				await choice.selectOption(last);
				await expect.poll(() => tab.page.url()).toContain(`resource=${last}`);
				const [chosen] = await sql(`SELECT count(*)::DOUBLE AS n FROM blame WHERE resource = '${last}'`);
				await expect.poll(() => tab.page.locator(".blame-rows tbody tr").count()).toBe(Number(chosen?.["n"]));
				expect(Number(chosen?.["n"])).toBeLessThan(all);
			});
			it("says what to record when there is nothing", async () => {
				await open(tab, server, { s: "plain.fathom", view: "blame" });
				await expect.poll(text).toContain("--layers sched,block");
			});
		});

		describe("layers", () => {
			it("adds up to the time of the calls", async () => {
				await open(tab, server, { ...session, view: "layers" });
				const shares = async () => {
					const cells = await tab.page.locator(".layers-sums tbody td:last-child").allInnerTexts();
					return cells.reduce((sum, cell) => sum + Number(cell.replace(/[^\d.]/g, "")), 0);
				};
				await expect.poll(shares).toBeGreaterThan(98);
				expect(await shares()).toBeLessThan(102);
				await expect.poll(() => colored(".layers-main")).toBeGreaterThan(300);
			});
			it("filters by a layer, and opens a request by keys and by a click", async () => {
				await open(tab, server, { ...session, view: "layers", order: "dur" });
				await tab.page.locator(".layers-sums tbody tr", { hasText: "the device working" }).click();
				await tab.page.getByRole("menuitem", { name: "Only these" }).click();
				await expect.poll(() => tab.page.locator(".chip").innerText()).toContain("device");
				await settled(tab.page);
				await tab.page.keyboard.press("]");
				await expect.poll(() => tab.page.url()).toContain("rid=");
				await expect.poll(text).toContain("Through the layers");
				await isPng(".layers-windows");
			});
			it("says which layers were not recorded", async () => {
				await open(tab, server, { s: "plain.fathom", view: "layers" });
				await expect.poll(text).toContain("Not recorded:");
			});
		});

		describe("devices", () => {
			it("have the requests that SQL has, and who made them", async () => {
				await open(tab, server, { ...session, view: "devices" });
				// The page's window is from the first call to the end of the last; requests go on behind it.
				const about = (await (await ask(server, "/sessions/work.fathom")).json()) as {
					started_at_ns: number;
					span: { from: number; to: number };
				};
				const [row] = await sql(
					`SELECT device, count(*)::DOUBLE AS n FROM block
				WHERE ts_ns >= ${about.started_at_ns + about.span.from} AND ts_ns < ${about.started_at_ns + about.span.to}
				GROUP BY device ORDER BY n DESC, device LIMIT 1`,
				);
				await expect
					.poll(() => tab.page.locator(".devices-table tbody tr").first().innerText())
					.toContain(String(row?.["device"]));
				const title = await tab.page
					.locator(".devices-table tbody tr")
					.first()
					.locator("td")
					.nth(1)
					.getAttribute("title");
				expect(Number((title ?? "").split(",")[0]?.replace(/\D/g, ""))).toBe(Number(row?.["n"]));
				await expect.poll(text).toContain("Who filled the queue");
				await expect.poll(() => colored(".devices")).toBeGreaterThan(200);
				// Who waits is to be seen at once.
				const both = tab.page.getByRole("button", { name: "waiting + in device" });
				expect(await both.getAttribute("aria-pressed")).toBe("true");
				for (const measure of ["in queue", "in device", "requests/s", "bytes/s"]) {
					await tab.page.getByRole("button", { name: measure, exact: true }).click();
					await settled(tab.page);
				}
				expect(await tab.page.locator('[role="alert"]').count()).toBe(0);
			});
			it("tell how to record them where they were not", async () => {
				await open(tab, server, { s: "plain.fathom", view: "devices" });
				await expect.poll(text).toContain("--layers block");
				await expect.poll(text).toContain("--layers pagecache");
			});
		});

		describe("the filter field", () => {
			it("asks back what nothing can match", async () => {
				await open(tab, server, { ...session, view: "table" });
				const field = tab.page.getByRole("combobox", { name: "Filter" });
				await field.fill("fsync");
				// The names of calls may come after other suggestions.
				await expect.poll(() => tab.page.locator(".suggestion", { hasText: "fsync" }).count()).toBeGreaterThan(0);
				await settled(tab.page);
				await field.fill("fsyncc");
				await field.press("Enter");
				await expect.poll(() => tab.page.locator(".doubt").innerText()).toContain("Did you mean");
				expect(tab.page.url()).not.toContain("f=");
				await tab.page.getByRole("button", { name: "syscall:fsync" }).click();
				await expect.poll(() => tab.page.url()).toContain("fsync");
			});
		});

		describe("compare", () => {
			it("wants a session on each side, and keeps them in the address", async () => {
				await open(tab, server, { view: "compare" });
				await expect.poll(text).toContain("Choose a session on each side");
				await tab.page.getByLabel("Before: add a session").selectOption("work.fathom");
				await tab.page.getByLabel("After: add a session").selectOption("slower.fathom");
				await expect.poll(() => tab.page.url()).toMatch(/after=slower.fathom.*before=work.fathom/);
				await expect.poll(() => colored(".compare-plots")).toBeGreaterThan(50);
				await tab.page.getByRole("button", { name: "calls/s" }).click();
				await expect.poll(() => tab.page.url()).toContain("over=calls");
			});
			it("tells what differs, as the server does", async ({ skip }) => {
				const there = await ask(server, "/compare?before=work.fathom&after=slower.fathom");
				skip(there.status === 501, "the server does not compare sessions");
				const told = (await there.json()) as {
					totals: { metric: string; before: number; after: number }[];
					headline: { text: string };
					changes: { minor: boolean }[];
					unproven: unknown[];
				};
				const calls = told.totals.find((total) => total.metric === "calls");
				// The second one writes 150 times more.
				expect((calls?.after ?? 0) - (calls?.before ?? 0)).toBeGreaterThan(150);
				await open(tab, server, { view: "compare", before: "work.fathom", after: "slower.fathom" });
				await expect.poll(text).toContain(told.headline.text.split(";")[0]);
				const minor = told.changes.filter((change) => change.minor);
				const lists = [minor.length, told.changes.length - minor.length, told.unproven.length];
				expect(await tab.page.locator(".changes").count()).toBe(lists.filter((n) => n > 0).length + 1);
				await tab.page.getByRole("button", { name: "Calls on files" }).click();
				await tab.page.getByLabel("Find a row").fill("data.bin");
				await expect.poll(() => tab.page.locator(".compare-table tbody tr").count()).toBeGreaterThan(1);
				await tab.page.getByRole("button", { name: "Swap the sides" }).click();
				await expect.poll(() => tab.page.url()).toContain("before=slower.fathom");
			});
			it("says so when a session does not exist", async () => {
				await open(tab, server, { view: "compare", before: "work.fathom", after: "gone.fathom" });
				await expect.poll(text).toContain("not in this directory");
				await expect.poll(() => tab.page.locator('[role="alert"]').count()).toBeGreaterThan(0);
			});
		});

		it("every view is drawn in light and at both widths without faults", { timeout: 240_000 }, async () => {
			for (const look of [
				{ width: 1280, theme: "light" as const },
				{ width: 2560, height: 1300, theme: "dark" as const },
			]) {
				const other = await openTab(browser, server, look);
				for (const view of ["file", "threads", "layers", "devices", "sql", "panels"]) {
					await open(other, server, { ...session, view });
					// Nothing sticks out of the page.
					const wide = await other.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
					expect(wide, `${view} at ${look.width}`).toBeLessThanOrEqual(0);
					expect(await other.page.locator('[role="alert"]').count(), view).toBe(0);
				}
				expect(other.faults).toEqual([]);
				await other.close();
			}
		});

		it("views follow a recording", { timeout: 240_000 }, async () => {
			const script = "i=0; while [ $i -lt 600 ]; do echo $i >> live.txt; sleep 0.05; i=$((i+1)); done";
			const child = recording(dir, "live", script);
			try {
				await expect.poll(async () => (await ask(server, "/sessions/live.fathom")).status).toBe(200);
				const counted = "SELECT count(*) AS calls FROM syscalls";
				await open(tab, server, { s: "live.fathom", view: "sql", sql: counted });
				const shown = async () => Number(await tab.page.locator(".result-row").first().innerText());
				await expect.poll(shown).toBeGreaterThan(0);
				const before = await shown();
				// Long before the recording ends.
				await expect.poll(shown, { timeout: 6000 }).toBeGreaterThan(before);
				await expect.poll(() => tab.page.locator(".minimap .now-edge").allInnerTexts()).toEqual(["now"]);
				await open(tab, server, { s: "live.fathom", view: "threads" });
				const calls = async () => {
					const cell = tab.page.locator(".threads-names tbody tr").first().locator("td").nth(2);
					return Number(((await cell.getAttribute("title")) ?? "").replace(/\D/g, ""));
				};
				await expect.poll(calls).toBeGreaterThan(0);
				const some = await calls();
				await expect.poll(calls, { timeout: 3000 }).toBeGreaterThan(some);
				await open(tab, server, { s: "live.fathom", view: "file" });
				await expect.poll(text).toContain("live.txt");
			} finally {
				await end(child);
			}
		});
	},
);
