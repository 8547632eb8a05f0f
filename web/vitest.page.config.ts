import { defineConfig } from "vitest/config";

// The tests in a browser: they need the built program, root and Chromium.
export default defineConfig({
	test: {
		include: ["tests/page/**/*.test.ts"],
		environment: "node",
		// Recordings would meet each other's I/O.
		fileParallelism: false,
		// A machine that is busy with other tests takes its time.
		expect: { poll: { timeout: 15_000, interval: 50 } },
		testTimeout: 60_000,
		hookTimeout: 120_000,
	},
});
