import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { VIEWS } from "../../src/views/index.ts";
import { ask, end, open, opened, openTab, recording, serve, settled, type Tab } from "./harness.ts";
import { browser, dir, HOSTILE, onStage, server, tab, text } from "./stage.ts";

/** Files that are written, read, looked for in vain, and one with a hostile name. */
const WORK = `
dd if=/dev/zero of=data.bin bs=4096 count=300 conv=fsync 2>/dev/null
cat data.bin data.bin > /dev/null
for i in 1 2 3 4 5; do cat missing-$i 2>/dev/null; done
printf hello > '${HOSTILE}'; cat '${HOSTILE}'
printf x > "$(printf 'line\\nbreak')"
mkdir d && mv data.bin d/moved.bin && ls -l d
`;

/** Keeps the answers to the questions that are meant back until it is opened. */
async function held(page: Page, meant: (path: string) => boolean): Promise<{ asked: Promise<void>; open: () => void }> {
	let open = () => {};
	let told = () => {};
	const opened = new Promise<void>((done) => {
		open = done;
	});
	const asked = new Promise<void>((done) => {
		told = done;
	});
	await page.route(
		(url) => meant(url.pathname),
		async (route) => {
			told();
			await opened;
			// Of a question that is no longer wanted nothing is left to go on with.
			await route.continue().catch(() => {});
		},
	);
	return { asked, open };
}

onStage(
	"the page",
	[
		["work", WORK, ["--layers", "all"]],
		["other", "echo hello > x; cat x"],
	],
	() => {
		const session = { s: "work.fathom" };

		describe("sessions", () => {
			it("are listed with what each was, and open by a click", async () => {
				await open(tab, server);
				await expect.poll(text).toContain("work.fathom");
				expect(await text()).toContain("other.fathom");
				await tab.page.getByRole("link", { name: "work.fathom" }).click();
				await expect.poll(() => tab.page.url()).toContain("view=overview");
				await expect.poll(text).toContain("Where the time went");
			});
			it("that do not exist say so and what to do", async () => {
				await open(tab, server, { s: "nothing.fathom" });
				await expect.poll(text).toMatch(/Session not found\s+nothing[.]fathom/);
				await tab.page.getByRole("link", { name: "Go to sessions" }).click();
				await expect.poll(text).toContain("work.fathom");
			});
		});

		describe("two sessions", () => {
			it("are compared from the earlier to the later, whichever is ticked first", async () => {
				for (const order of [
					["work", "other"],
					["other", "work"],
				]) {
					await open(tab, server);
					for (const name of order) await tab.page.getByLabel(`Compare ${name}.fathom`).check();
					const button = tab.page.getByRole("button", { name: "Compare:" });
					// That is the order in which they were recorded.
					await expect.poll(() => button.innerText()).toMatch(/work\.fathom\s*→\s*other\.fathom/);
					await button.click();
					await expect.poll(() => tab.page.url()).toContain("before=work.fathom");
					expect(tab.page.url()).toContain("after=other.fathom");
					await tab.page.goto("about:blank");
				}
			});
		});

		describe("the table", () => {
			it("opens a row that was clicked before it was there", async () => {
				await open(tab, server, { ...session, view: "table" });
				const gate = await held(tab.page, (path) => /\/events/.test(path));
				await tab.page.locator(".grid-scroll").evaluate((element) => {
					element.scrollTop = element.scrollHeight;
				});
				await gate.asked;
				const waiting = tab.page.locator(".grid-row", { has: tab.page.locator(".grid-wait") });
				await waiting.last().click();
				expect(tab.page.url()).not.toContain("rid=");
				expect(await tab.page.locator(".grid").getAttribute("aria-busy")).toBe("true");
				gate.open();
				await expect.poll(() => tab.page.url()).toContain("rid=");
			});
		});

		describe("the timeline", () => {
			it("marks what is not loaded yet, and says so until it is", async () => {
				const gate = await held(tab.page, (path) => path.endsWith("/timeline"));
				const query = new URLSearchParams({ ...session, view: "timeline" });
				await tab.page.goto(`${server.origin}/?${query}#token=${server.token}`);
				await gate.asked;
				const board = tab.page.locator(".board");
				await expect.poll(() => board.getAttribute("aria-busy")).toBe("true");
				/** How many pixels of the middle of the first lane are not of its most frequent color. */
				const drawn = () =>
					tab.page.locator(".board canvas").evaluate((canvas) => {
						const element = canvas as HTMLCanvasElement;
						const context = element.getContext("2d");
						const { data } = context?.getImageData(element.width / 2, 32, 200, 14) ?? { data: [] };
						const colors = new Map<string, number>();
						for (let i = 0; i < data.length; i += 4) {
							const color = `${data[i]} ${data[i + 1]} ${data[i + 2]}`;
							colors.set(color, (colors.get(color) ?? 0) + 1);
						}
						return data.length / 4 - Math.max(0, ...colors.values());
					});
				await expect.poll(drawn).toBeGreaterThan(200);
				gate.open();
				await expect.poll(() => board.getAttribute("aria-busy")).toBe("false");
			});
		});

		describe("the overview", () => {
			it("has the figures that SQL has", async () => {
				await open(tab, server, session);
				const about = (await (await ask(server, "/sessions/work.fathom")).json()) as { stored: number };
				const calls = tab.page
					.locator(".summary > div")
					.filter({ has: tab.page.locator("dt", { hasText: /^Calls$/ }) });
				await expect
					.poll(async () => (await calls.getAttribute("title"))?.replace(/\D/g, ""))
					.toBe(String(about.stored));
				await expect.poll(text).toContain("0 lost");
			});
			it("filters by a click in a list, and back undoes it", async () => {
				await open(tab, server, session);
				await tab.page.locator(".top-syscall tbody tr", { hasText: "openat" }).click();
				await tab.page.getByRole("menuitem", { name: "Only these" }).click();
				await expect.poll(() => tab.page.url()).toContain("openat");
				await expect.poll(async () => tab.page.locator(".chip").innerText()).toContain("openat");
				await tab.page.goBack();
				await expect.poll(() => tab.page.locator(".chip").count()).toBe(0);
			});
			it("zooms by a drag over a plot, in every plot at once", async () => {
				await open(tab, server, session);
				const plot = tab.page.locator(".u-over").first();
				await plot.scrollIntoViewIfNeeded();
				const box = await plot.boundingBox();
				if (!box) throw new Error("no plot");
				await tab.page.mouse.move(box.x + box.width * 0.3, box.y + 20);
				await tab.page.mouse.down();
				await tab.page.mouse.move(box.x + box.width * 0.6, box.y + 25, { steps: 4 });
				await tab.page.mouse.up();
				await expect.poll(() => tab.page.url()).toMatch(/from=\d.*to=\d/);
				await expect.poll(() => tab.page.locator(".minimap .frame").count()).toBe(1);
				await tab.page.keyboard.press("0");
				await expect.poll(() => tab.page.url()).not.toContain("from=");
			});
		});

		describe("a link", () => {
			it("holds the whole state: session, view, window, filter, selection and order", async () => {
				const state = {
					...session,
					view: "table",
					from: 1000,
					to: 60_000_000_000,
					f: JSON.stringify({ class: ["data"], not_syscall: ["lseek"], dur: [1, null] }),
					sort: "-bytes",
					columns: "ts_ns,syscall,bytes",
				};
				await open(tab, server, state);
				await tab.page.locator(".grid-row").first().click();
				await expect.poll(() => tab.page.url()).toContain("rid=");
				const link = tab.page.url();
				const shown = async (page: Page) => ({
					chips: await page.locator(".chip").allInnerTexts(),
					rows: await page.locator(".grid-row").allInnerTexts(),
					window: await page.locator(".window-text").innerText(),
					call: await page.locator(".request-head h2").innerText(),
				});
				const before = await shown(tab.page);
				expect(before.chips).toHaveLength(3);
				const other = await openTab(browser, server);
				await open(other, server);
				await other.page.goto(link);
				await settled(other.page);
				await expect.poll(() => shown(other.page)).toEqual(before);
				await other.close();
			});
		});

		it("draws its plots from what its HTML names, and asks for lists after them", async () => {
			const one = await openTab(browser, server);
			await one.page.addInitScript(() => {
				new MutationObserver((_, observer) => {
					if (!document.querySelector(".u-over")) return;
					Object.assign(window, {
						plotsAt: performance.now(),
						latencies: [...document.querySelectorAll(".latency .u-over, .latency [aria-busy=true]")].map(
							(e) => e.className,
						),
					});
					observer.disconnect();
				}).observe(document, { subtree: true, childList: true });
			});
			const cdp = await one.context.newCDPSession(one.page);
			await cdp.send("Network.enable");
			const named = new Map<string, string>();
			cdp.on("Network.requestWillBeSent", ({ request, initiator }) => {
				named.set(new URL(request.url).pathname, initiator.type);
			});
			await open(one, server, session);
			const before = await one.page.evaluate(() => {
				const { plotsAt } = window as unknown as { plotsAt: number };
				const all = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
				const asked = all.filter((entry) => entry.startTime < plotsAt);
				return asked.map(({ name, encodedBodySize: bytes }) => ({ path: new URL(name).pathname, bytes }));
			});
			const files = before.filter(({ path }) => path.startsWith("/assets/"));
			expect(files.filter(({ path }) => named.get(path) !== "parser")).toEqual([]);
			// With the session's three questions as many as a browser asks a server at a time.
			expect(files.length).toBeLessThanOrEqual(3);
			const scripts = files.filter(({ path }) => path.endsWith(".js"));
			expect(scripts.reduce((all, { bytes }) => all + bytes, 0)).toBeLessThan(160_000);
			const answers = before.map(({ path }) => path).filter((path) => path.startsWith("/api/"));
			expect(answers.sort()).toEqual(["/api/access", "/api/sessions/work.fathom", "/api/sessions/work.fathom/tiles"]);
			// Latencies are more than half of the answer to the question of the plots, so they are asked for after them.
			const latencies = await one.page.evaluate(() => (window as unknown as { latencies: string[] }).latencies);
			expect(latencies).toEqual(["figures latency-classes", "state"]);
			expect(await one.page.locator(".latency .u-over").count()).toBe(1);
			expect(await one.page.locator(".latency-classes tbody tr").first().innerText()).toMatch(/≈ .*≈ .*> /);
			const p99 = one.page.locator(".summary > div").filter({ has: one.page.locator("dt", { hasText: /^p99 of/ }) });
			expect(await p99.innerText()).toMatch(/≈ [\d.]+ .s/);
			expect(new URL(one.page.url()).hash).toBe("");
			expect(one.faults).toEqual([]);
			await one.close();
		});

		it("weighs less than 400 KB, all views together", { timeout: 240_000 }, async () => {
			let bytes = 0;
			const seen = new Set<string>();
			tab.page.on("response", async (response) => {
				const { pathname } = new URL(response.url());
				if (pathname.startsWith("/api") || seen.has(pathname)) return;
				seen.add(pathname);
				bytes += Number(response.headers()["content-length"] ?? Number.NaN);
			});
			for (const view of VIEWS) await open(tab, server, opened(view, session.s));
			expect(seen.size).toBeGreaterThan(VIEWS.length);
			expect(bytes).toBeGreaterThan(100_000);
			expect(bytes).toBeLessThan(400_000);
		});

		it("saves plots as pictures", async () => {
			await open(tab, server, session);
			const download = tab.page.waitForEvent("download");
			await tab.page.locator(".overview-plots").getByRole("button", { name: "PNG" }).first().click();
			expect((await download).suggestedFilename()).toBe(`${session.s.replace(".fathom", "")}-rates.png`);
			const path = await (await download).path();
			const head = readFileSync(path).subarray(0, 24);
			expect(head.subarray(1, 4).toString()).toBe("PNG");
			expect(head.readUInt32BE(16)).toBeGreaterThan(800);
		});

		it("tells findings with the calls that show them", async () => {
			await open(tab, server, session);
			const told = (await (await ask(server, "/sessions/work.fathom/findings")).json()) as { findings: unknown[] };
			const panel = tab.page.getByRole("region", { name: "Findings" });
			await expect.poll(() => panel.innerText()).toContain(`${told.findings.length} in the whole session`);
			// Minor notes are behind a line of their own.
			const listed = panel.locator(".findings-list > .finding");
			expect(await listed.count()).toBe(Math.min(told.findings.length, 3));
		});

		describe("the filter", () => {
			it("takes typed conditions, and the table shows only calls that hold", async () => {
				await open(tab, server, { ...session, view: "table" });
				// What is typed before the field has the focus is keys of the view.
				await tab.page.keyboard.press("/");
				await expect.poll(() => tab.page.evaluate(() => document.activeElement?.tagName)).toBe("INPUT");
				await tab.page.keyboard.type("ENOENT");
				await expect.poll(() => tab.page.locator("input:focus").inputValue()).toBe("ENOENT");
				await tab.page.keyboard.press("Enter");
				await expect.poll(() => tab.page.url()).toContain("ENOENT");
				await tab.page.keyboard.press("Escape");
				await settled(tab.page);
				const rows = tab.page.locator(".grid-row");
				await expect.poll(() => rows.count()).toBeGreaterThan(4);
				await expect.poll(async () => (await rows.allInnerTexts()).every((row) => row.includes("ENOENT"))).toBe(true);
			});
			it("keeps keys that are pressed before the session is there", async () => {
				const gate = await held(tab.page, (path) => path.endsWith("/sessions/work.fathom"));
				const query = new URLSearchParams({ ...session, view: "table" });
				await tab.page.goto(`${server.origin}/?${query}#token=${server.token}`);
				await gate.asked;
				// The session is asked for while the scripts that listen are on their way.
				await tab.page.locator("#page > *").first().waitFor({ state: "attached" });
				for (const key of ["/", ..."ENOENT", "Enter"]) await tab.page.keyboard.press(key);
				expect(tab.page.url()).not.toContain("ENOENT");
				gate.open();
				await expect.poll(() => tab.page.url()).toContain("ENOENT");
				// And each only once.
				await tab.page.keyboard.press("Escape");
				await settled(tab.page);
				expect(await tab.page.locator(".chip").count()).toBe(1);
				expect(await tab.page.getByLabel("Filter", { exact: true }).inputValue()).toBe("");
			});
			it("says what to do when nothing is left", async () => {
				await open(tab, server, {
					...session,
					view: "table",
					f: JSON.stringify({ syscall: ["fsync"], error: ["EXDEV"] }),
				});
				await expect.poll(text).toContain("No calls like these in this window");
			});
		});

		describe("the table", () => {
			it("sorts by a click on a head", async () => {
				await open(tab, server, { ...session, view: "table" });
				await tab.page.getByRole("columnheader", { name: "Duration" }).getByRole("button").click();
				await expect.poll(() => tab.page.url()).toContain("sort=-dur_ns");
				await settled(tab.page);
				const took = async () => {
					const cells = await tab.page
						.locator(".grid-row > :nth-child(2)")
						.evaluateAll((all) => all.map((c) => c.getAttribute("title")));
					return cells.slice(0, 20).map((c) => Number((c ?? "").replace(/\D/g, "")));
				};
				await expect
					.poll(async () => {
						const values = await took();
						return values.length > 5 && values.every((v, i) => i === 0 || v <= (values[i - 1] ?? 0));
					})
					.toBe(true);
			});
			it("opens a call, which links to the timeline", async () => {
				await open(tab, server, { ...session, view: "table", sort: "-dur_ns" });
				await tab.page.locator(".grid-row").first().click();
				await expect.poll(() => tab.page.url()).toContain("rid=");
				await expect.poll(text).toContain("Calls before and after");
			});
			it("begins with the slowest on request, and sums up what is selected", async () => {
				await open(tab, server, { ...session, view: "table" });
				await tab.page.getByRole("button", { name: "slowest first" }).click();
				await expect.poll(() => tab.page.url()).toContain("sort=-dur_ns");
				await settled(tab.page);
				await tab.page.locator(".grid-row").first().click();
				await tab.page
					.locator(".grid-row")
					.nth(3)
					.click({ modifiers: ["Shift"] });
				await expect.poll(() => tab.page.locator(".table-sums").innerText()).toMatch(/^4 selected · .* in calls/);
			});
			it("has its columns in the address", async () => {
				await open(tab, server, { ...session, view: "table", columns: "syscall,ret" });
				expect(await tab.page.getByRole("columnheader").count()).toBe(2);
			});
		});

		describe("the timeline", () => {
			it("draws lanes, zooms by keys, and a click opens the call", async () => {
				await open(tab, server, { ...session, view: "timeline" });
				const board = tab.page.locator(".board");
				await expect.poll(() => painted(tab)).toBeGreaterThan(200);
				const box = await board.boundingBox();
				if (!box) throw new Error("no board");
				// Somewhere in the first lanes there is a call: one that is found by its pointer.
				await tab.page.keyboard.press("w", { delay: 300 });
				await expect.poll(() => tab.page.url()).toContain("from=");
				const found = await findCall(tab, box);
				expect(found).toBe(true);
				await expect.poll(() => tab.page.url()).toContain("rid=");
				await expect.poll(text).toContain("Through the layers");
				await tab.page.keyboard.press("Escape");
				await expect.poll(() => tab.page.url()).not.toContain("rid=");
			});
			it("selects by keys and shows layers", async () => {
				await open(tab, server, { ...session, view: "timeline", f: JSON.stringify({ syscall: ["fsync"] }) });
				await expect.poll(() => painted(tab)).toBeGreaterThan(0);
				await tab.page.keyboard.press("Enter");
				await expect.poll(() => tab.page.url()).toContain("rid=");
				await expect.poll(text).toContain("Through the layers");
				await tab.page.keyboard.press("z");
				await expect.poll(() => tab.page.url()).toContain("from=");
				await tab.page.waitForTimeout(800);
				const without = await painted(tab);
				await tab.page.keyboard.press("l");
				await expect.poll(() => painted(tab)).not.toBe(without);
			});
			it("goes down to nanoseconds and back", async () => {
				await open(tab, server, { ...session, view: "timeline", from: 1_000_000, to: 1_000_100 });
				await expect.poll(() => tab.page.locator(".window-text").innerText()).toContain("100 ns");
				await tab.page.goBack();
			});
		});

		describe("a request", () => {
			it("has its layers, which add up, and its neighbors", async () => {
				const rows = await ask(server, `/sessions/work.fathom/threads`);
				expect(rows.ok).toBe(true);
				await open(tab, server, {
					...session,
					view: "table",
					sort: "-dur_ns",
					f: JSON.stringify({ syscall: ["fsync"] }),
				});
				await tab.page.locator(".grid-row").first().click();
				await tab.page.getByRole("link", { name: "Details" }).click();
				await expect.poll(text).toContain("Through the layers");
				await expect.poll(() => tab.page.locator('svg[aria-label*="in all"]').count()).toBe(1);
				// Why it took so long, and what its device did meanwhile.
				await expect.poll(() => tab.page.locator(".request-why").innerText()).toContain("fsync");
				await expect.poll(() => tab.page.locator(".meanwhile-said").first().innerText()).toContain("This call had");
				await tab.page.getByRole("link", { name: "Show in Devices" }).waitFor();
				// The chain of its waits, whose segments add up.
				const path = tab.page.getByRole("region", { name: "Critical path" });
				await expect.poll(() => path.locator('svg[aria-label^="Critical path of"]').count()).toBe(1);
				const shares = await path.locator("tbody td:nth-child(3)").allInnerTexts();
				const sum = shares.reduce((all, share) => all + Number(share.replace(/[^\d.]/g, "")), 0);
				expect(Math.abs(sum - 100)).toBeLessThan(2);
				const before = tab.page.url();
				await tab.page.keyboard.press(",");
				await expect.poll(() => tab.page.url()).not.toBe(before);
			});
			it("that does not exist says so", async () => {
				await open(tab, server, { ...session, view: "request", rid: 999_999_999 });
				await expect.poll(() => tab.page.locator('[role="alert"]').count()).toBeGreaterThan(0);
			});
		});

		describe("hostile names", () => {
			it("are text in every view", async () => {
				for (const view of ["overview", "timeline", "table"]) {
					await open(tab, server, { ...session, view, f: JSON.stringify({ path: "onerror" }) });
					if (view !== "timeline") await expect.poll(text).toContain(HOSTILE);
					expect(await tab.page.locator("img[src=x]").count()).toBe(0);
				}
				await open(tab, server, { ...session, view: "table", f: JSON.stringify({ path: "line" }) });
				await expect.poll(text).toContain("line\\nbreak");
			});
			it("in addresses do nothing", async () => {
				await open(tab, server, { s: HOSTILE, view: "overview", f: '{"path":"<script>alert(2)</script>"}' });
				expect(await tab.page.locator("img[src=x]").count()).toBe(0);
			});
		});

		describe("the server", () => {
			it("that refuses the token is told a new one", async () => {
				await tab.page.goto(`${server.origin}/#token=wrong`);
				await expect.poll(text).toContain("This link needs its access token");
				await tab.page.getByRole("textbox").fill(server.url);
				await tab.page.getByRole("button", { name: "Open" }).click();
				await expect.poll(text).toContain("work.fathom");
			});
			it("keeps its token out of the address", async () => {
				await open(tab, server);
				expect(tab.page.url()).not.toContain(server.token);
			});
			it("that goes away is said quietly, and the page goes on when it is back", async () => {
				const own = await serve(dir);
				const view = await openTab(browser, own);
				await open(view, own, session);
				await own.stop();
				await view.page.keyboard.press("w");
				await expect.poll(() => view.page.locator(".banner").innerText()).toContain("does not answer");
				// What was shown stays.
				expect(await view.page.locator(".u-over").count()).toBeGreaterThan(0);
				const back = await serve(dir, own.port);
				// A new start has a new token: the page says so, and what was shown still stays.
				const refused = view.page.locator(".refused");
				await expect.poll(() => refused.innerText()).toContain("was restarted");
				expect(await view.page.locator(".u-over").count()).toBeGreaterThan(0);
				// The key has changed the window, which the address has a moment later.
				await expect.poll(() => view.page.url()).toContain("from=");
				const where = view.page.url();
				// Its address in another tab is enough.
				const other = await view.context.newPage();
				await other.goto(back.url);
				await expect.poll(() => view.page.locator(".banner, .refused").count()).toBe(0);
				await settled(view.page);
				expect(view.page.url()).toBe(where);
				await view.close();
				await back.stop();
			});
		});

		it("shows its keys, and closes that sheet with Escape", async () => {
			await open(tab, server, session);
			await tab.page.keyboard.press("?");
			await expect.poll(() => tab.page.getByRole("dialog").innerText()).toContain("Zoom in");
			await tab.page.keyboard.press("Escape");
			await expect.poll(() => tab.page.getByRole("dialog").count()).toBe(0);
		});

		it("switches between dark and light and keeps the choice", async () => {
			await open(tab, server, session);
			const ground = () => tab.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
			const dark = await ground();
			await tab.page.keyboard.press("t");
			await expect.poll(ground).not.toBe(dark);
			const light = await ground();
			await tab.page.reload();
			await settled(tab.page);
			expect(await ground()).toBe(light);
		});

		it("is light where the system is", async () => {
			const light = await openTab(browser, server, { theme: "light" });
			await open(light, server);
			expect(await light.page.evaluate(() => document.documentElement.dataset["theme"])).toBe("light");
			await light.close();
		});

		it("follows a recording, and notices its end", { timeout: 240_000 }, async () => {
			const script = "i=0; while [ $i -lt 400 ]; do echo $i >> live.txt; sleep 0.05; i=$((i+1)); done";
			const child = recording(dir, "live", script);
			try {
				await open(tab, server);
				await expect.poll(text).toContain("live.fathom");
				await tab.page.getByRole("link", { name: "live.fathom" }).click();
				await expect.poll(() => tab.page.locator(".badge.live").count()).toBe(1);
				const calls = async () => {
					const title = await tab.page.locator(".summary > div").first().getAttribute("title");
					return Number((title ?? "").replace(/\D/g, ""));
				};
				await expect.poll(calls).toBeGreaterThan(0);
				const before = await calls();
				await expect.poll(calls).toBeGreaterThan(before);
			} finally {
				await end(child);
			}
			await expect.poll(() => tab.page.locator(".badge.live").count()).toBe(0);
		});
	},
);

/** Pixels of the board that are neither ground nor lines: calls. */
async function painted(tab: Tab): Promise<number> {
	return tab.page.evaluate(() => {
		const canvas = document.querySelector<HTMLCanvasElement>(".board canvas");
		const context = canvas?.getContext("2d");
		if (!canvas || !context || canvas.width === 0) return 0;
		const { data } = context.getImageData(200, 30, canvas.width - 200, canvas.height - 30);
		let found = 0;
		for (let i = 0; i < data.length; i += 4) {
			const spread =
				Math.max(data[i] ?? 0, data[i + 1] ?? 0, data[i + 2] ?? 0) -
				Math.min(data[i] ?? 0, data[i + 1] ?? 0, data[i + 2] ?? 0);
			if (spread > 35) found += 1;
		}
		return found;
	});
}

/** Moves over the lanes until the pointer says that it is on a call, and clicks. */
async function findCall(tab: Tab, box: { x: number; y: number; width: number; height: number }): Promise<boolean> {
	for (let lane = 0; lane < 6; lane += 1) {
		for (let x = 200; x < box.width - 8; x += 3) {
			await tab.page.mouse.move(box.x + x, box.y + 26 + lane * 28 + 14);
			if (await tab.page.locator(".board.on-call").count()) {
				await tab.page.mouse.down();
				await tab.page.mouse.up();
				return true;
			}
		}
	}
	return false;
}
