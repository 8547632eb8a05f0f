// Opens the dashboard as a user does. Prints the queries of its charts and Superset's answers, by the number of the chart.
// Usage: superset.mjs CHROMIUM ADDRESS PASSWORD PICTURE CHARTS

import { createRequire } from "node:module";
import { argv, exit, stdout } from "node:process";

const { chromium } = createRequire(new URL("../../web/package.json", import.meta.url))("playwright-core");
const [executablePath, address, password, picture, charts] = argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
page.setDefaultTimeout(180_000);
const asked = {};
const faults = [];
page.on("pageerror", (error) => faults.push(error.message));
page.on("response", async (response) => {
	const url = new URL(response.url());
	const chart = JSON.parse(url.searchParams.get("form_data") ?? "{}").slice_id;
	if (url.pathname !== "/api/v1/chart/data") return;
	if (!response.ok()) faults.push(`${response.status()} ${await response.text()}`);
	else if (chart) asked[chart] = { question: response.request().postDataJSON(), answer: await response.json() };
});

await page.goto(`${address}/login/`);
await page.locator("#username").fill("admin");
await page.locator("#password").fill(password);
await page.keyboard.press("Enter");
await page.waitForURL(/welcome/);
await page.goto(`${address}/superset/dashboard/fathom/`);
// Charts ask when they come into view.
await page.locator(".dashboard-grid").waitFor();
const height = await page.locator(".grid-content").evaluate((grid) => grid.scrollHeight);
await page.setViewportSize({ width: 1600, height: height + 160 });
const until = Date.now() + 180_000;
while (Object.keys(asked).length < Number(charts) && !faults.length && Date.now() < until) await page.waitForTimeout(200);
await page.waitForLoadState("networkidle");
// Bars grow when they appear.
await page.waitForTimeout(3000);
const alerts = await page.locator(".dashboard-grid [role=alert], .dashboard-grid .ant-alert").allInnerTexts();
const empty = await page.locator(".dashboard-grid").getByText("No results").count();
await page.screenshot({ path: picture });
await browser.close();
stdout.write(JSON.stringify(asked));
if (faults.length || alerts.length || empty) {
	stdout.write(`\n${JSON.stringify({ faults, alerts, empty })}`);
	exit(1);
}
