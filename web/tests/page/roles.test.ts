import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ended, openTab, recording, type Server, serve, settled, type Tab } from "./harness.ts";
import { browser, dir, onStage } from "./stage.ts";

const TOKENS = { look: "1".repeat(32), query: "2".repeat(32), record: "3".repeat(32) };

/** An access file with a token for each role. */
function access(): string {
	const folder = join(dir, ".access");
	mkdirSync(folder, { mode: 0o700 });
	let written = "";
	for (const [role, token] of Object.entries(TOKENS)) {
		writeFileSync(join(folder, role), token, { mode: 0o600 });
		written += `[[token]]\nrole = "${role}"\nfile = "${role}"\n`;
	}
	writeFileSync(join(folder, "access.toml"), written, { mode: 0o600 });
	return join(folder, "access.toml");
}

onStage("roles", [["work", "for i in 1 2 3; do echo x > x; cat x; done"]], () => {
	let roles: Server;
	let tab: Tab;
	beforeAll(async () => {
		roles = await serve(dir, 0, ["--access", access()]);
	});
	afterAll(async () => {
		await roles?.stop();
	});
	beforeEach(async () => {
		tab = await openTab(browser, roles);
		return async () => {
			const { faults, strangers } = tab;
			await tab.close();
			expect(faults).toEqual([]);
			expect(strangers).toEqual([]);
		};
	});
	const open = (role: keyof typeof TOKENS, state: Record<string, string>) =>
		tab.page.goto(`${roles.origin}/?${new URLSearchParams(state)}#token=${TOKENS[role]}`);
	const text = () => tab.page.locator("body").innerText();
	const tabs = () => tab.page.locator("nav.tabs a").allInnerTexts();

	it("asks for a token where none is in the address", async () => {
		await tab.page.goto(`${roles.origin}/`);
		await expect.poll(text).toContain("This link needs its access token");
		await tab.page.getByLabel("Address or token").fill(TOKENS.look);
		await tab.page.getByRole("button", { name: "Open" }).click();
		await expect.poll(text).toContain("work.fathom");
	});

	describe("a client who may look", () => {
		it("has no tabs for SQL, and keys and links to it lead nowhere", async () => {
			await open("look", { s: "work.fathom" });
			await settled(tab.page);
			await expect.poll(tabs).not.toContain("SQL");
			expect(await tabs()).not.toContain("Panels");
			expect(await tabs()).toContain("Timeline");
			await tab.page.keyboard.press("q");
			await tab.page.keyboard.press("p");
			expect(tab.page.url()).not.toMatch(/view=(sql|panels)/);
			await open("look", { s: "work.fathom", view: "sql" });
			await expect.poll(text).toContain("SQL needs role query");
			expect(await text()).toContain("Your role is look");
		});
		it("sees single calls", async () => {
			await open("look", { s: "work.fathom", view: "table" });
			await expect.poll(text).toContain("openat");
		});
	});

	it("has SQL for a client who may query", async () => {
		await open("query", { s: "work.fathom" });
		await settled(tab.page);
		await expect.poll(tabs).toContain("SQL");
		await tab.page.keyboard.press("q");
		await expect.poll(() => tab.page.url()).toContain("view=sql");
	});

	it("saves a running recording for a client who may record, and for no other", async () => {
		const child = recording(dir, "live", "while [ ! -e end ]; do echo x > y; cat y; sleep 0.05; done");
		const live = () => tab.page.locator(".badge.live").count();
		const menu = tab.page.getByTitle("Save or stop this recording");
		try {
			await expect.poll(() => existsSync(join(dir, "live.fathom/session.json"))).toBe(true);
			await open("query", { s: "live.fathom" });
			await expect.poll(live).toBe(1);
			expect(await menu.count()).toBe(0);
			await tab.page.goto("about:blank");
			await open("record", { s: "live.fathom" });
			await expect.poll(() => menu.count()).toBe(1);
			await menu.click();
			// Another process records it.
			expect(await tab.page.getByText("Stop recording").count()).toBe(0);
			await tab.page.getByText("Save now").click();
			await expect.poll(text).toMatch(/Saved as live-.*[.]fathom/);
		} finally {
			writeFileSync(join(dir, "end"), "");
			await ended(child);
		}
	});
});
