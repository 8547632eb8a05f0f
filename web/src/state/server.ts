// The one server that this page talks to.

import { useSyncExternalStore } from "react";
import { archiveSender, keptFiles, readArchive } from "../api/archive";
import { Client, type Connection, TOKEN } from "../api/client";
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

/** The question that `public/early.js` has asked, with the headers that it sent. */
interface Early {
	address: string;
	authorization: string;
	answer: Promise<Response>;
}

/** Asks the server, unless that was done before this script came. */
const send: typeof fetch = (input, init) => {
	const holder = globalThis as { fathomEarly?: Early };
	const early = holder.fathomEarly;
	if (early && early.address === input) {
		delete holder.fathomEarly;
		if (new Headers(init?.headers).get("Authorization") === early.authorization) {
			const again = () => fetch(input, init);
			return early.answer.then((answer) => (answer.ok && !answer.redirected ? answer : again()), again);
		}
	}
	return fetch(input, init);
};

export const client = archive ? new Client(null, archiveSender(archive)) : new Client(storage(), send);

/** Takes the token out of the address, so that it is in no link that is copied from there. */
export function takeToken(): void {
	const token = tokenOf(window.location.hash);
	if (token === null) return;
	client.setToken(token);
	window.history.replaceState(null, "", window.location.pathname + window.location.search);
}

/** Takes a token that another tab has got, as its server was started anew. */
export function followToken(): void {
	window.addEventListener("storage", (event) => {
		if (event.key === TOKEN && event.newValue) client.setToken(event.newValue);
	});
}

export function useConnection(): Connection {
	return useSyncExternalStore(client.subscribe, client.getConnection);
}
