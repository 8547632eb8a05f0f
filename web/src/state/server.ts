// The one server that this page talks to.

import { useSyncExternalStore } from "react";
import { archiveSender, keptFiles, readArchive } from "../api/archive";
import { Client, type Connection, TOKEN } from "../api/client";
import { sendOrTake } from "./early";
import { tokenOf } from "./url";

function storage(): Storage | null {
	try {
		return typeof window === "undefined" ? null : window.localStorage;
	} catch {
		return null;
	}
}

/** What this page was saved with; null when it has a server. */
export const archive = readArchive();

/** The files of which a saved page has the accesses; null on a page that has a server. */
export const savedFiles = archive ? keptFiles(archive) : null;

export const client = archive
	? new Client(null, archiveSender(archive))
	: new Client(
			storage(),
			sendOrTake((input, init) => fetch(input, init)),
		);

/** Takes the token from the address. */
export function takeToken(): void {
	const token = tokenOf(window.location.hash);
	if (token !== null) client.setToken(token);
}

/** Takes the token out of the address, so that it is in no link that is copied from there. */
export function hideToken(): void {
	if (tokenOf(window.location.hash) === null) return;
	window.history.replaceState(null, "", window.location.pathname + window.location.search);
}

/** Takes a token that another tab has got, as its server was started again, or that comes with the address. */
export function followToken(): void {
	window.addEventListener("hashchange", () => {
		takeToken();
		hideToken();
	});
	window.addEventListener("storage", (event) => {
		if (event.key === TOKEN && event.newValue) client.setToken(event.newValue);
	});
}

export function useConnection(): Connection {
	return useSyncExternalStore(client.subscribe, client.getConnection);
}
