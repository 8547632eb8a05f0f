// The timeline's plots of the machine, and windows in which nothing but states is seen.

import { tableFromIPC } from "apache-arrow";
import { describe, expect, it } from "vitest";
import { bytes, percent } from "../../src/lib/format.ts";
import { end, open, recording, settled } from "./harness.ts";
import { dir, onStage, server, tab, text } from "./stage.ts";

/** Writes and computes, and then waits for seconds without a call. */
const WORK = `
dd if=/dev/zero of=data.bin bs=64k count=300 conv=fsync 2>/dev/null
python3 -c 'import time
until = time.monotonic() + 1
while time.monotonic() < until: pass
time.sleep(3)'
`;

onStage(
	"the timeline",
	[
		["work", WORK],
		["plain", "echo hello > x; cat x", ["--layers", "syscall"]],
	],
	() => {
		const session = { s: "work.fathom", view: "timeline" };
		const plots = () => tab.page.locator(".machine-plot");

		async function sql(statement: string): Promise<Record<string, number>> {
			const answer = await fetch(`${server.origin}/api/sessions/work.fathom/sql`, {
				method: "POST",
				headers: { Authorization: `Bearer ${server.token}`, "Content-Type": "application/json" },
				body: JSON.stringify({ sql: statement }),
			});
			if (!answer.ok) throw new Error(await answer.text());
			const row =
				tableFromIPC(new Uint8Array(await answer.arrayBuffer()))
					.toArray()[0]
					?.toJSON() ?? {};
			return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, Number(value)]));
		}

		/** Points at a plot, somewhere in its middle; what stands beside the pointer. */
		async function told(title: string): Promise<string> {
			const box = await tab.page.locator(`.machine-plot[aria-label^="${title}"] canvas`).boundingBox();
			if (!box) throw new Error(`no plot ${title}`);
			await tab.page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
			await expect.poll(() => tab.page.locator(".tip").count()).toBe(1);
			return (await tab.page.locator(".tip").innerText()).replaceAll("\u202f", "");
		}

		describe("the machine", () => {
			it("has the values of its table beside the pointer", async () => {
				const row = await sql(
					`SELECT ts_ns - (SELECT started_at_ns FROM session) AS t, ended_at_ns - ts_ns AS dur, available_bytes,
					 running_threads, user_ns, user_ns + system_ns + interrupt_ns + iowait_ns + idle_ns + steal_ns AS all_ns
					 FROM machine ORDER BY ts_ns LIMIT 1 OFFSET 1`,
				);
				const { t = 0, dur = 0, available_bytes: available = 0, user_ns: user = 0, all_ns: all = 0 } = row;
				await open(tab, server, { ...session, from: Math.round(t + dur / 4), to: Math.round(t + dur / 2) });
				expect(await told("Processors")).toContain(percent(user / all));
				expect(await told("Available memory")).toContain(`${bytes(available)} (${available} B)`);
				expect(await told("Runnable threads")).toMatch(new RegExp(`threads\\s+${row["running_threads"]}\\s`));
			});
			it("has the time in which a device was busy", async () => {
				const { begin, end, devices } = await sql(
					`SELECT min(issued_at_ns) - (SELECT started_at_ns FROM session) AS begin,
					 max(completed_at_ns) - (SELECT started_at_ns FROM session) AS end, count(DISTINCT device) AS devices
					 FROM block WHERE issued_at_ns IS NOT NULL`,
				);
				await open(tab, server, { ...session, from: begin ?? 0, to: end ?? 0 });
				const words = () => plots().filter({ hasText: "busy" }).getAttribute("aria-label");
				if (devices === 0) expect(await plots().filter({ hasText: "busy" }).count()).toBe(0);
				else expect(await words()).toMatch(/at most [\d.]+ %/);
			});
			it("moves with the lanes", async () => {
				await open(tab, server, session);
				const before = await tab.page.locator(".window-text").innerText();
				const box = await plots().first().boundingBox();
				if (!box) throw new Error("no plot");
				await tab.page.mouse.move(box.x + box.width * 0.7, box.y + 10);
				await tab.page.mouse.wheel(0, -400);
				await expect.poll(() => tab.page.url()).toContain("from=");
				expect(await tab.page.locator(".window-text").innerText()).not.toBe(before);
				// One line marks the time below the pointer in both.
				const line = await tab.page.locator(".timeline-pointer").boundingBox();
				const board = await tab.page.locator(".board").boundingBox();
				expect((line?.y ?? 0) + (line?.height ?? 0)).toBeGreaterThan((board?.y ?? 0) + 50);
				expect(line?.y).toBeLessThan(box.y + 1);
			});
			it("is as wide as the lanes, also where these are scrolled", async () => {
				await tab.page.setViewportSize({ width: 1280, height: 520 });
				await open(tab, server, session);
				const right = async (selector: string) => {
					const box = await tab.page.locator(selector).first().boundingBox();
					return (box?.x ?? 0) + (box?.width ?? 0);
				};
				expect(await right(".machine-plot canvas")).toBe(await right(".board canvas"));
				// Keys reach plots that are scrolled out of sight.
				expect(await tab.page.locator(".machine-plots").getAttribute("tabindex")).toBe("0");
			});
			it("can be folded up by keyboard, and a link keeps that", async () => {
				await open(tab, server, session);
				expect(await plots().count()).toBeGreaterThan(3);
				const button = tab.page.getByRole("button", { name: "Machine" });
				expect(await button.getAttribute("aria-expanded")).toBe("true");
				await button.focus();
				await tab.page.keyboard.press("Enter");
				await expect.poll(() => plots().count()).toBe(0);
				expect(await button.getAttribute("aria-expanded")).toBe("false");
				await tab.page.reload();
				await settled(tab.page);
				expect(await button.count()).toBe(1);
				expect(await plots().count()).toBe(0);
			});
			it("is absent where it was not recorded", async () => {
				await open(tab, server, { ...session, s: "plain.fathom" });
				await expect.poll(() => tab.page.locator(".board").count()).toBe(1);
				expect(await tab.page.locator(".machine").count()).toBe(0);
			});
			it("follows a recording", { timeout: 240_000 }, async () => {
				const child = recording(dir, "live", "for i in $(seq 300); do echo $i > live.txt; sleep 0.05; done");
				try {
					await open(tab, server);
					await expect.poll(text).toContain("live.fathom");
					await open(tab, server, { ...session, s: "live.fathom" });
					const words = async () => ((await plots().count()) > 1 ? plots().first().getAttribute("aria-label") : null);
					await expect.poll(words).toContain("Processors");
					const before = await words();
					await expect.poll(words).not.toBe(before);
				} finally {
					await end(child);
				}
			});
		});

		describe("a window without calls", () => {
			it("says so, and has the states of the threads", async () => {
				const { t = 0, dur = 0 } = await sql(
					`SELECT ts_ns - (SELECT started_at_ns FROM session) AS t, dur_ns AS dur FROM waits
					 WHERE reason = 'timer' ORDER BY dur_ns DESC LIMIT 1`,
				);
				const [from, to] = [Math.round(t + dur / 4), Math.round(t + dur / 2)];
				const { calls } = await sql(
					`SELECT count(*) AS calls FROM syscalls, session
					 WHERE ts_ns < started_at_ns + ${to} AND ts_ns + dur_ns > started_at_ns + ${from}`,
				);
				expect(calls).toBe(0);
				await open(tab, server, { ...session, from, to });
				await expect
					.poll(() => tab.page.locator(".board-note").innerText())
					.toMatch(/^No calls in this window\. The strips/);
				expect(await tab.page.locator(".states-key").innerText()).toContain("blocked: timer");
				expect(await tab.page.locator(".board").getAttribute("aria-label")).toContain("States of 2 threads");
				// Without the strips there is nothing to draw, but something to do.
				await tab.page.getByRole("button", { name: "States" }).click();
				await expect.poll(text).toContain("Switch on States");
				expect(await plots().count()).toBeGreaterThan(3);
			});
		});
	},
);
