// Answers that are there before the page is first drawn, so that it is drawn once, with its plots.

import { useSyncExternalStore } from "react";
import { columns } from "../api/session";
import { arrived, askedForSums } from "./early";
import { turns } from "./quiet";
import { client } from "./server";

/** So long the page waits for them; then it is drawn as far as it can be. */
const WAIT_MS = 100;

const answers = new Map<string, unknown>();

/** Takes the answers to the early questions, as far as they are there soon. */
export async function takeFirst(): Promise<void> {
	hasLatencies = !askedForSums();
	const paths = (await arrived(WAIT_MS)).map((address) => address.replace(/^\/api/, ""));
	const taken = paths.map(async (path) => {
		try {
			answers.set(path, /\/tiles\?/.test(path) ? await columns(client, path) : await client.json(path));
		} catch {
			// It is asked again, and then says what is wrong.
		}
	});
	await Promise.all(taken);
}

/** The answer to the question with this key, while the page is first drawn. */
export function firstAnswer(key: string | null): unknown {
	return key === null ? undefined : answers.get(key);
}

/** From now on questions are asked: the answers grow old. */
export function forgetFirst(): void {
	answers.clear();
}

/** Whether sums over time have latencies: at first they have none, which makes their answer less than half as large. */
let hasLatencies = true;
const listeners = new Set<() => void>();

export function useLatencies(): boolean {
	return useSyncExternalStore(
		(listener) => {
			listeners.add(listener);
			return () => listeners.delete(listener);
		},
		() => hasLatencies,
	);
}

/** Asks for latencies when the first sums are on the screen, and the lists that are in sight. */
export async function askForLatencies(signal: AbortSignal): Promise<void> {
	await turns.shown.passed(signal);
	if (signal.aborted || hasLatencies) return;
	hasLatencies = true;
	for (const listener of listeners) listener();
}
