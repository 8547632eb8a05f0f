// The page for those who do not see it or use no mouse: names, roles and contrast by the rules of axe, in every view,
// dark and light; and every control reached by keyboard, named, with a focus that is seen.

import { describe, expect, it } from "vitest";
import { VIEWS } from "../../src/views/index.ts";
import { broken } from "./axe.ts";
import { open, opened, openTab } from "./harness.ts";
import { browser, HOSTILE, onStage, server, tab } from "./stage.ts";

const WORK = `
dd if=/dev/zero of=data.bin bs=4096 count=300 conv=fsync 2>/dev/null
dd if=/dev/zero of=slow.bin bs=512 count=40 oflag=dsync 2>/dev/null
cat data.bin > /dev/null; cat missing 2>/dev/null
echo x > '${HOSTILE}'
`;

interface Stop {
	what: string;
	name: string;
	seen: boolean;
	unseen: string;
}

/** Where the focus is: what it is, its name, and whether one sees that it is there. */
function focused(): Stop | null {
	const at = document.activeElement;
	if (!(at instanceof HTMLElement) || at === document.body) return null;
	const labeled = (at.getAttribute("aria-labelledby") ?? "")
		.split(" ")
		.map((id) => document.getElementById(id)?.textContent ?? "")
		.join("");
	const labels = "labels" in at ? [...((at as HTMLInputElement).labels ?? [])].map((l) => l.textContent).join("") : "";
	const name = at.getAttribute("aria-label") || labeled || labels || at.innerText || at.title;
	const style = getComputedStyle(at);
	const box = at.getBoundingClientRect();
	const marked = (style.outlineStyle !== "none" && style.outlineWidth !== "0px") || style.boxShadow !== "none";
	return {
		what: at.outerHTML.slice(0, 100),
		name: (name ?? "").trim(),
		seen: marked && box.width > 0 && box.height > 0,
		unseen: `${style.outlineStyle} ${style.outlineWidth} ${box.width}x${box.height}`,
	};
}

onStage(
	"access",
	[
		["work", WORK, ["--layers", "all"]],
		["again", WORK, ["--layers", "all"]],
	],
	() => {
		const s = "work.fathom";
		const sql = "SELECT syscall, count(*) AS calls FROM syscalls GROUP BY ALL ORDER BY calls DESC";
		// Those that show something only with more in the address, or more than as they open.
		const prepared: [string, Record<string, string | number>][] = [
			["overview, filtered", { s, view: "overview", f: '{"syscall":["write"]}' }],
			["timeline, a request", { s, view: "timeline", rid: 5 }],
			["request", { s, view: "request", rid: 5 }],
			["threads, lanes", { s, view: "threads", as: "lanes" }],
			["sql", { s, view: "sql", sql }],
			["sql, drawn", { s, view: "sql", sql, form: "line" }],
			["compare", { view: "compare", before: s, after: "again.fathom" }],
		];
		const plain = VIEWS.filter(({ id }) => !prepared.some(([name]) => name === id));
		const views = [...plain.map((view) => [view.id, opened(view, s)] as const), ...prepared];
		describe.each(views)("%s", (_, state) => {
			it.each(["dark", "light"] as const)("breaks no rule, %s", async (theme) => {
				const own = await openTab(browser, server, { theme });
				try {
					await open(own, server, state);
					await own.page.waitForTimeout(500);
					expect(await broken(own)).toEqual([]);
				} finally {
					await own.close();
				}
			});
			it("is reached by keyboard, control by control", async () => {
				await open(tab, server, state);
				await tab.page.waitForTimeout(300);
				const stops: Stop[] = [];
				for (let i = 0; i < 250; i += 1) {
					await tab.page.keyboard.press("Tab");
					const stop = await tab.page.evaluate(focused);
					if (!stop) break;
					stops.push(stop);
				}
				expect(stops.length).toBeGreaterThan(4);
				expect(stops.filter((stop) => stop.name === "" || !stop.seen)).toEqual([]);
				// Rows that are clicked have something in them that is pressed.
				const rows = tab.page.locator("tr.link:not(:has(a, button, input))");
				expect(await rows.allInnerTexts()).toEqual([]);
			});
			it("tells in words what each plot shows", async () => {
				await open(tab, server, state);
				const unnamed = await tab.page.evaluate(() =>
					[...document.querySelectorAll("canvas")]
						.filter((c) => c.width > 0 && !c.closest('[aria-hidden="true"]'))
						.filter((c) => {
							const image = c.closest('[role="img"],[role="application"],[role="grid"],[role="slider"]');
							return !image?.getAttribute("aria-label");
						})
						.map((c) => c.outerHTML.slice(0, 120)),
				);
				expect(unnamed).toEqual([]);
			});
		});
		it("the help sheet takes the focus, keeps it, and gives it back", async () => {
			await open(tab, server, { s, view: "timeline" });
			await tab.page.keyboard.press("Tab");
			const before = await tab.page.evaluate(focused);
			await tab.page.keyboard.press("?");
			const dialog = tab.page.getByRole("dialog");
			await expect.poll(() => dialog.count()).toBe(1);
			expect(await broken(tab)).toEqual([]);
			for (let i = 0; i < 5; i += 1) {
				await tab.page.keyboard.press("Tab");
				expect(await tab.page.evaluate(() => document.activeElement?.closest("[role=dialog]") !== null)).toBe(true);
			}
			await tab.page.keyboard.press("Escape");
			await expect.poll(() => dialog.count()).toBe(0);
			expect((await tab.page.evaluate(focused))?.what).toBe(before?.what);
		});
	},
);
