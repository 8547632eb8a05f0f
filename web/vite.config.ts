import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
	plugins: [react()],
	build: {
		target: "es2022",
		outDir: "dist",
		emptyOutDir: true,
		// The content security policy allows files of the page's own origin only.
		assetsInlineLimit: 0,
		modulePreload: { polyfill: false },
		// A view is a file of its own, fetched when it is first opened.
		chunkSizeWarningLimit: 400,
	},
	// `vite` serves the sources; a running `fathom ui` answers their requests.
	server: {
		proxy: {
			"/api": {
				target: process.env["FATHOM_UI"] ?? "http://127.0.0.1:7327",
				changeOrigin: true,
				headers: { Origin: process.env["FATHOM_UI"] ?? "http://127.0.0.1:7327" },
			},
		},
	},
	test: { include: ["src/**/*.test.ts"], environment: "node" },
});
