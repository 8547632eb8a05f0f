// What the server lets this client do.

import { useSyncExternalStore } from "react";
import type { AccessAnswer, Role } from "../api/types";
import { archive, client } from "./server";

const ORDER: readonly Role[] = ["look", "query", "record"];

let access: AccessAnswer | null = null;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
	listeners.add(listener);
	return () => listeners.delete(listener);
}

async function ask(): Promise<void> {
	try {
		access = await client.json<AccessAnswer>("/access");
		for (const listener of listeners) listener();
	} catch {
		// What the page shows then says what is wrong; this is asked again when the server is back.
	}
}

/** Asks at once, and again with another token or another server. */
export function followAccess(): void {
	if (archive) return;
	let asked = client.getGeneration();
	client.subscribe(() => {
		const generation = client.getGeneration();
		if (generation === asked) return;
		asked = generation;
		void ask();
	});
	void ask();
}

/** Null until the server has answered, and on a saved page. */
export function useAccess(): AccessAnswer | null {
	return useSyncExternalStore(subscribe, () => access);
}

/** Whether a client with this answer has a role; yes until it is known, as most clients have all of them. */
export function has(of: AccessAnswer | null, role: Role): boolean {
	return of === null || ORDER.indexOf(of.role) >= ORDER.indexOf(role);
}

/** The same outside of components. */
export function may(role: Role): boolean {
	return has(access, role);
}
