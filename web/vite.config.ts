import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import react from "@vitejs/plugin-react";
import { build, type Plugin } from "vite";
import { defineConfig } from "vitest/config";

/**
 * The page as one file, `share.html`: the server puts answers into it, and it opens without a server. Scripts and styles
 * are inline, and the policy allows these alone, by their hashes.
 */
function sharedPage(): Plugin {
	return {
		name: "shared-page",
		apply: "build",
		async generateBundle() {
			const made = await build({
				configFile: false,
				logLevel: "error",
				plugins: [react()],
				publicDir: false,
				build: {
					target: "es2022",
					write: false,
					cssCodeSplit: false,
					assetsInlineLimit: Number.MAX_SAFE_INTEGER,
					rolldownOptions: {
						input: "src/main.tsx",
						output: { format: "iife", codeSplitting: false },
					},
				},
			});
			const outputs = (Array.isArray(made) ? made : [made]).flatMap((one) => ("output" in one ? one.output : []));
			const icon = readFileSync("public/icon.svg").toString("base64");
			const script = outputs
				.flatMap((part) => (part.type === "chunk" ? [part.code] : []))
				.join("")
				.replaceAll("/icon.svg", `data:image/svg+xml;base64,${icon}`)
				.replaceAll("</script", "<\\/script")
				.replaceAll("<!--", "<\\!--");
			const style = outputs
				.flatMap((part) => (part.type === "asset" && part.fileName.endsWith(".css") ? [String(part.source)] : []))
				.join("")
				// A font inside the file is not fetched, but the first text is drawn before it is decoded.
				.replaceAll(/font-display: ?optional/g, "font-display:block");
			const hash = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
			const policy = [
				"default-src 'none'",
				`script-src ${hash(script)}`,
				`style-src ${hash(style)}`,
				"img-src data: blob:",
				"font-src data:",
				"base-uri 'none'",
				"form-action 'none'",
			].join("; ");
			const source = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="dark light">
<title>fathom</title>
<style>${style}</style>
</head>
<body>
<div id="page"></div>
<noscript>This page needs JavaScript.</noscript>
<!--fathom:answers-->
<script>${script}</script>
</body>
</html>
`;
			this.emitFile({ type: "asset", fileName: "share.html", source });
		},
	};
}

/** Puts `src/early.js` into the page. The server's policy allows this one script inside of it, by its hash. */
function earlyScript(): Plugin {
	const lines = readFileSync("src/early.js", "utf8").split("\n");
	const code = lines.map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("//"));
	return {
		name: "early-script",
		transformIndexHtml: (html) => html.replace("<!--early-->", () => `<script>${code.join("\n")}</script>`),
	};
}

export default defineConfig({
	plugins: [react(), earlyScript(), sharedPage()],
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
