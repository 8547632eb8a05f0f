import { defineConfig } from "vitest/config";

// The tests in a browser: they need the built program, root and Chromium.
export default defineConfig({
	test: {
		include: ["tests/page/**/*.test.ts"],
		environment: "node",
		// A browser, its server and recordings wait for each other a third of the time.
		maxWorkers: 2,
		// A machine that is busy with other tests takes its time.
		expect: { poll: { timeout: 40_000, interval: 50 } },
		testTimeout: 120_000,
		hookTimeout: 120_000,
	},
});
