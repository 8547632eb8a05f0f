// The one server that this page talks to.

import { useSyncExternalStore } from "react";
import { Client, type Connection } from "../api/client";
import { tokenOf } from "./url";

function storage(): Storage | null {
	try {
		return typeof window === "undefined" ? null : window.localStorage;
	} catch {
		return null;
	}
}

export const client = new Client(storage());

/** Takes the token out of the address, so that it is in no link that is copied from there. */
export function takeToken(): void {
	const token = tokenOf(window.location.hash);
	if (token === null) return;
	client.setToken(token);
	window.history.replaceState(null, "", window.location.pathname + window.location.search);
}

export function useConnection(): Connection {
	return useSyncExternalStore(client.subscribe, client.getConnection);
}
