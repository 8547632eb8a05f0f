import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import react from "@vitejs/plugin-react";
import { build, type Plugin } from "vite";
import { defineConfig } from "vitest/config";

/**
 * uPlot makes formatters of numbers and dates when its code starts, which loads the browser's tables of languages: 20 ms
 * before the first plot. The page formats its numbers itself. So these are made when something asks for them.
 */
function lazyFormats(): Plugin {
	const changes = [
		["const numFormatter = new Intl.NumberFormat(domEnv ? nav.language : 'en-US');", "let numFormatter;"],
		[
			"const fmtNum = val => numFormatter.format(val);",
			"const fmtNum = val => (numFormatter ??= new Intl.NumberFormat(domEnv ? nav.language : 'en-US')).format(val);",
		],
		["const localTz = new Intl.DateTimeFormat().resolvedOptions().timeZone;", ""],
		["else if (tz == localTz)", "else if (tz == new Intl.DateTimeFormat().resolvedOptions().timeZone)"],
	] as const;
	return {
		name: "lazy-formats",
		enforce: "pre",
		transform(code, id) {
			if (!id.endsWith("/uPlot.esm.js")) return null;
			return changes.reduce((made, [from, to]) => {
				if (made.split(from).length !== 2) throw new Error(`uPlot has changed: it does not contain ${from} once`);
				return made.replace(from, () => to);
			}, code);
		},
	};
}

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
				plugins: [react(), lazyFormats()],
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
			const script = outputs
				.flatMap((part) => (part.type === "chunk" ? [part.code] : []))
				.join("")
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

/** Nothing is drawn before the page's scripts have drawn something: a frame without content takes time from them. */
function noEmptyFrame(): Plugin {
	return {
		name: "no-empty-frame",
		apply: "build",
		transformIndexHtml: {
			order: "post",
			handler: (html) => html.replace('<script type="module"', '<script type="module" blocking="render"'),
		},
	};
}

export default defineConfig({
	plugins: [react(), lazyFormats(), earlyScript(), noEmptyFrame(), sharedPage()],
	build: {
		target: "es2022",
		outDir: "dist",
		emptyOutDir: true,
		// The content security policy allows files of the page's own origin only.
		assetsInlineLimit: 0,
		modulePreload: { polyfill: false },
		rolldownOptions: {
			output: {
				// One file for the first view: a browser asks a server six things at a time, and the session is among them.
				codeSplitting: { groups: [{ name: "page", test: /\/src\/main\.tsx$/ }] },
			},
		},
		// A view is a file of its own, fetched when it is first opened.
		chunkSizeWarningLimit: 500,
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
