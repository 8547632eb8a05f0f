// The rules of axe, on a page as it is.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Result, RunOptions } from "axe-core";
import type { Tab } from "./harness.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What breaks a rule, a line each. */
export async function broken(of: Tab): Promise<string[]> {
	await of.page.evaluate(AXE);
	const options: RunOptions = { resultTypes: ["violations"] };
	const found = await of.page.evaluate(async (given) => {
		const { axe } = window as unknown as {
			axe: { run: (on: Document, how: unknown) => Promise<{ violations: Result[] }> };
		};
		return (await axe.run(document, given)).violations;
	}, options);
	return found.flatMap((rule) =>
		rule.nodes.map((node) => `${rule.id}: ${node.target.join(" ")} ${node.html.slice(0, 120)} ${node.any[0]?.message}`),
	);
}
