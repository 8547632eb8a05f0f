// First, so that the rules of a view override these, in the saved page, too.
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/parts.css";

import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { keepView, Shell } from "./app/Shell";
import { followAccess } from "./state/access";
import { forgetFirst, takeFirst } from "./state/first";
import { listenForKeys } from "./state/keys";
import { followToken, hideToken, takeToken } from "./state/server";
import { startTheme } from "./state/theme";
import Overview from "./views/overview";

// The first view of a session comes with the page: files that name each other are fetched one after the other.
keepView("overview", Overview);
takeToken();
followAccess();
startTheme();
listenForKeys();
void show();

async function show(): Promise<void> {
	const page = document.getElementById("page");
	if (!page) return;
	const first = takeFirst();
	// While the answers are on their way: these wait for another process of the browser.
	hideToken();
	followToken();
	await first;
	flushSync(() => createRoot(page).render(<Shell />));
	forgetFirst();
}
