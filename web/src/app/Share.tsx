// What is shown, for others: a link, a command, a picture, or a page in one file.

import { useEffect } from "react";
import { Actions } from "../components/actions";
import { saveBlob, savedName } from "../components/save";
import { snapshot } from "../components/snapshot";
import { chipsOf } from "../lib/filters";
import { duration, time, visible, wallTime } from "../lib/format";
import { archive, client } from "../state/server";
import { resolveWindow, type Session, useMaybeSession } from "../state/session";
import { store, useRestedPage } from "../state/store";
import type { PageState } from "../state/url";
import { VIEWS, viewOf } from "../views";
import { visitLinks } from "./visit";

/** Views that were looked at since the page was opened: a saved page has tabs for them. */
const looked = new Set<string>();

export function Share() {
	const page = useRestedPage();
	const session = useMaybeSession();
	useEffect(() => {
		looked.add(page.view);
	}, [page.view]);
	if (archive) {
		return (
			<span
				className="badge"
				title="This file was saved from fathom. It has what was looked at then, and needs no server."
			>
				saved page
			</span>
		);
	}
	return (
		<Actions
			name="Share"
			title="Share what is shown"
			actions={[
				{
					title: "Copy link",
					about: "To this view, window, filter and call. It has no access token.",
					act: () => copy(`${window.location.origin}/${store.address()}`, "Link"),
					stays: true,
				},
				{
					title: "Copy command",
					about: "Opens the same on any machine that has the session.",
					act: () => copy(`fathom ui --at '${store.address()}'`, "Command"),
					stays: true,
				},
				{
					title: "Copy as picture",
					about: "PNG, 1200 × 675, with session, window and host.",
					act: () => copyPicture(page, session),
				},
				{
					title: "Save as page",
					about:
						"One HTML file of what this tab has shown, and of what its explanations link to. It opens without a server.",
					act: (say) => savePage(page, (done, all) => say(`Saving: link ${done} of ${all}`)),
				},
			]}
		/>
	);
}

function copy(text: string, what: string): Promise<string> {
	return navigator.clipboard.writeText(text).then(
		() => `${what} copied`,
		() => "The browser did not let the page copy",
	);
}

async function copyPicture(page: PageState, session: Session | null): Promise<string> {
	const main = document.getElementById("main");
	if (!main) throw new Error("nothing is shown");
	const blob = await snapshot(main, captionOf(page, session));
	try {
		await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
		return "Picture copied";
	} catch {
		// Browsers without pictures on the clipboard, and pages that are not allowed to use it.
		saveBlob(blob, `${savedName(page.session, page.view)}.png`);
		return "Picture saved";
	}
}

function captionOf(page: PageState, session: Session | null) {
	const view = viewOf(page.view)?.title ?? page.view;
	if (!session) return { title: view, what: "", where: window.location.host };
	const span = resolveWindow(page.window, session.bounds);
	const width = span.to - span.from;
	const filter = chipsOf(page.filter).map(
		(chip) => `${chip.name}${chip.not ? " is not" : ""} ${chip.values.join(", ")}`,
	);
	const { about } = session;
	const machine = about.machine ? `${about.machine.name}, Linux ${about.machine.kernel}` : about.host;
	return {
		title: `${visible(page.session ?? "")} · ${view}`,
		what: [
			`${duration(width)} (${time(span.from, width / 1000)} – ${time(span.to, width / 1000)})`,
			...filter.map(visible),
		].join(" · "),
		where: [machine, wallTime(about.started_unix_ms), visible(about.command ?? about.target)]
			.filter((part) => part !== "")
			.join(" · "),
	};
}

async function savePage(page: PageState, say: (done: number, all: number) => void): Promise<string> {
	await visitLinks(looked.has("overview"), say);
	const own = page.session === null ? null : `/sessions/${encodeURIComponent(page.session)}`;
	const belongs = (path: string) =>
		own === null || path === own || path.startsWith(`${own}/`) || path.startsWith(`${own}?`) || path === "/panels";
	const questions = client.getAnswered().filter(({ path }) => belongs(path));
	const views = VIEWS.filter((view) => looked.has(view.id) && view.scope === (own === null ? "all" : "session"));
	const request = { title: document.title, start: store.address(), views: views.map((view) => view.id), questions };
	const answer = await client.request("/share", { method: "POST", body: JSON.stringify(request) });
	const blob = await answer.blob();
	saveBlob(new Blob([blob], { type: "text/html" }), `${savedName(page.session, page.view)}.html`);
	return `Page saved: ${(blob.size / 2 ** 20).toFixed(1)} MiB, ${views.map((view) => view.title).join(", ")}`;
}
