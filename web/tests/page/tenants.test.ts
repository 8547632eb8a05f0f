// Filters by tenant, in a browser over a session of two units: real cgroups, made as systemd makes them.

import { join } from "node:path";
import { expect, it } from "vitest";
import { VIEWS } from "../../src/views/index.ts";
import { ask, open, settled } from "./harness.ts";
import { rowsOf } from "./sql.ts";
import { onStage, server, tab, text } from "./stage.ts";

/** Each unit writes a file of its own, as often as its number says. */
const WORK = `
root=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
slice=$root/fathom-page-$$.slice
mkdir -p "$slice/web.service" "$slice/log.service"
in_unit() { sh -c 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"' sh "$@"; }
in_unit "$slice/web.service" dd if=/dev/zero of=web.bin bs=4096 count=40 2>/dev/null
in_unit "$slice/log.service" dd if=/dev/zero of=log.bin bs=512 count=300 2>/dev/null
rmdir "$slice/web.service" "$slice/log.service" "$slice"
`;

const session = { s: "units.fathom" };
const SHOTS = process.env["FATHOM_SHOTS"];

async function calls(where: string): Promise<number> {
	const rows = await rowsOf(server, "units.fathom", `SELECT coalesce(sum(calls), 0)::DOUBLE AS n FROM ${where}`);
	return Number(rows[0]?.["n"]);
}

onStage("filters by tenant", [["units", WORK]], () => {
	it("are suggested, typed, and asked back when they are a slip", async () => {
		expect(await calls("by_unit WHERE unit = 'web.service'")).toBeGreaterThan(80);
		await open(tab, server, { ...session, view: "table" });
		const field = tab.page.getByLabel("Filter", { exact: true });
		await field.click();
		await field.fill("web.serv");
		const suggested = tab.page.locator(".suggestion", { has: tab.page.locator(".kind", { hasText: /^unit$/ }) });
		await expect.poll(() => suggested.allInnerTexts().then((all) => all.join())).toContain("web.service");
		if (SHOTS) await tab.page.screenshot({ path: join(SHOTS, "suggestions.png") });
		await field.fill("unit:webb");
		await field.press("Enter");
		await expect.poll(text).toContain("No unit “webb” in this session");
		await field.fill("unit:web");
		await field.press("Enter");
		await expect.poll(() => tab.page.locator(".chip").innerText()).toContain("web");
		await settled(tab.page);
		const rows = tab.page.locator(".grid-row");
		await expect.poll(() => rows.count()).toBeGreaterThan(4);
		const all = await rows.allInnerTexts();
		expect(all.some((row) => row.includes("log.bin"))).toBe(false);
		if (SHOTS) await tab.page.screenshot({ path: join(SHOTS, "table.png") });
	});
	it("have the calls of the unit in each address and in SQL", async () => {
		for (const [filter, where] of [
			[{ unit: ["web"] }, "by_unit WHERE unit = 'web.service'"],
			[{ unit: ["web", "log.service"] }, "by_unit WHERE unit IN ('web.service', 'log.service')"],
			[
				{ not_unit: ["*.service"] },
				"by_unit WHERE unit IS DISTINCT FROM 'web.service' AND unit IS DISTINCT FROM 'log.service'",
			],
			[{ cgroup: ["/fathom-page-*.slice"] }, "by_cgroup WHERE cgroup LIKE '/fathom-page-%'"],
			[{ pod: ["none"] }, "by_unit WHERE false"],
		] as const) {
			const f = JSON.stringify(filter);
			const expected = await calls(where);
			const threads = await ask(server, `/sessions/units.fathom/threads?${new URLSearchParams({ f })}`);
			const { threads: found } = (await threads.json()) as { threads: { calls: number }[] };
			expect(found.reduce((sum, thread) => sum + thread.calls, 0)).toBe(expected);
			const counted = "SELECT count(*) AS calls FROM syscalls WHERE $filter";
			await open(tab, server, { ...session, view: "sql", sql: counted, f });
			await expect.poll(async () => Number(await tab.page.locator(".result-row").first().innerText())).toBe(expected);
		}
	});
	it("are heeded by every view", async () => {
		const f = JSON.stringify({ unit: ["web"] });
		const asked: string[] = [];
		tab.page.on("request", (request) => asked.push(decodeURIComponent(request.url())));
		for (const { id } of VIEWS.filter((view) => view.scope === "session")) {
			await open(tab, server, { ...session, view: id, f });
			expect(await tab.page.locator(".chip").innerText()).toContain("web");
			// Findings concern the whole session.
			if (["table", "flame", "timeline", "threads"].includes(id)) expect(await text()).not.toContain("log.bin");
			if (SHOTS) await tab.page.screenshot({ path: join(SHOTS, `${id}.png`) });
		}
		expect(asked.filter((url) => url.includes("/timeline?")).every((url) => url.includes('"unit":["web"]'))).toBe(true);
	});
});
