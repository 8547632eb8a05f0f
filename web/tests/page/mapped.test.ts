// Programs that read through mappings, and lists of files that begin with a directory, in a browser.

import { expect, it } from "vitest";
import { duration } from "../../src/lib/format.ts";
import { open } from "./harness.ts";
import { LISTED, MAPPED, sql } from "./recorded.ts";
import { onStage, server, tab } from "./stage.ts";

onStage(
	"mapped files",
	[
		["mapped", MAPPED],
		["listed", LISTED],
	],
	() => {
		const number = (told: string | null) => Number((told ?? "").replace(/\D/g, ""));
		const overview = () => open(tab, server, { s: "mapped.fathom", view: "overview" });
		const one = async (statement: string, s = "mapped.fathom") => (await sql(statement, s))[0] ?? {};

		it("the Overview has the time of page faults wherever it has that of calls", async () => {
			const { ns, n } = await one("SELECT sum(dur_ns)::DOUBLE AS ns, count(*)::DOUBLE AS n FROM faults");
			const calls = await one("SELECT sum(dur_ns)::DOUBLE AS ns FROM syscalls");
			// The program seems to do little else.
			expect(Number(n)).toBeGreaterThan(8000);
			await overview();
			const row = tab.page.locator(".where-syscall tbody tr", { hasText: "page fault" });
			await expect.poll(() => row.count()).toBe(1);
			expect(number(await row.locator("td").nth(1).getAttribute("title"))).toBe(ns);
			// No filter selects them.
			expect(await row.getByRole("button").count()).toBe(0);
			const top = tab.page.locator(".top-syscall tbody tr", { hasText: "page fault" });
			await expect.poll(() => top.locator("td").nth(2).getAttribute("title")).toContain("page faults");
			const figure = tab.page.locator(".summary > div").filter({ hasText: "Time in calls + faults" });
			const [inCalls, inFaults, faults] =
				((await figure.getAttribute("title")) ?? "").match(/[\d\u202f]+(?= ns| page)/g) ?? [];
			expect([inCalls, inFaults, faults].map((told) => number(told ?? ""))).toEqual([calls["ns"], ns, n]);
		});

		it("the file that is read through a mapping has that time, and so has its thread", async () => {
			const both = "(SELECT path, tid, dur_ns FROM syscalls UNION ALL SELECT path, tid, dur_ns FROM faults)";
			const file = await one(`SELECT sum(dur_ns)::DOUBLE AS ns FROM ${both} WHERE path LIKE '%/mapped.bin'`);
			const thread = await one(
				`SELECT tid::DOUBLE AS tid, sum(dur_ns)::DOUBLE AS ns FROM ${both} GROUP BY 1 ORDER BY ns DESC LIMIT 1`,
			);
			await overview();
			for (const card of [".where-file", ".top-path"]) {
				const row = tab.page.locator(`${card} tbody tr`, { hasText: "mapped.bin" });
				await expect.poll(() => row.count()).toBe(1);
				const time = await row.locator("td").nth(1).getAttribute("title");
				expect(number((time ?? "").split(",")[0] ?? ""), card).toBe(file["ns"]);
			}
			const first = tab.page.locator(".where-thread tbody tr").first();
			await expect.poll(() => first.innerText()).toContain(String(thread["tid"]));
			expect(number(await first.locator("td").nth(1).getAttribute("title"))).toBe(thread["ns"]);
		});

		it("the flame graph and the strip of the whole session have it, too", async () => {
			const { ns } = await one(
				"SELECT sum(dur_ns)::DOUBLE AS ns FROM (SELECT dur_ns FROM syscalls UNION ALL SELECT dur_ns FROM faults)",
			);
			await overview();
			expect(await tab.page.locator(".minimap").getAttribute("title")).toContain("page fault");
			await open(tab, server, { s: "mapped.fathom", view: "flame", levels: "syscall" });
			await expect.poll(() => tab.page.locator(".flame-below").innerText()).toContain("page fault");
			expect(await tab.page.locator(".flame-path").innerText()).toContain(duration(Number(ns)));
		});

		it("the view File opens with the file that has most time, and something to draw", async () => {
			await open(tab, server, { s: "mapped.fathom", view: "file" });
			await expect.poll(() => tab.page.locator(".file-head h1").innerText()).toContain("/mapped.bin");
			// Listing a directory takes longer than all else here, and has no offsets.
			const most = await one(
				"SELECT file_type FROM by_file WHERE file_id IS NOT NULL ORDER BY total_ns DESC LIMIT 1",
				"listed.fathom",
			);
			expect(most["file_type"]).toBe("directory");
			await open(tab, server, { s: "listed.fathom", view: "file" });
			const title = () => tab.page.locator(".file-head h1").innerText();
			await expect.poll(title).toMatch(/\S/);
			const shown = await title();
			const accesses = await one(
				`SELECT (SELECT count(*) FROM syscalls WHERE path = '${shown.replaceAll("'", "''")}' AND bytes > 0 AND file_offset IS NOT NULL
				AND syscall NOT LIKE 'getdents%')::DOUBLE + (SELECT count(*) FROM faults WHERE path = '${shown.replaceAll("'", "''")}')::DOUBLE AS n`,
				"listed.fathom",
			);
			expect(Number(accesses["n"]), shown).toBeGreaterThan(0);
		});
	},
);
