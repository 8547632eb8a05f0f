// Answers that are there before the page is first drawn, so that it is drawn once, with its plots.

import { useSyncExternalStore } from "react";
import { columns } from "../api/session";
import { arrived, askedForSums } from "./early";
import { client } from "./server";

/** So long the page waits for them; then it is drawn as far as it can be. */
const WAIT_MS = 100;

const answers = new Map<string, unknown>();

/** Takes the answers to the early questions, as far as they are there soon. */
export async function takeFirst(): Promise<void> {
	if (askedForSums()) detail = "sums";
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

/**
 * Which sums over time the page shows: at first those without latencies, which are less than half of an answer with them,
 * then `coming` ones with latencies, and those from then on.
 */
export type Detail = "sums" | "coming" | "latencies";

let detail: Detail = "latencies";
const listeners = new Set<() => void>();

function change(next: Detail): void {
	detail = next;
	for (const listener of listeners) listener();
}

export function useDetail(): Detail {
	return useSyncExternalStore(
		(listener) => {
			listeners.add(listener);
			return () => listeners.delete(listener);
		},
		() => detail,
	);
}

/** A page in the background draws no frame. */
const NO_FRAME_MS = 200;

/** Says that sums are there to be drawn, with latencies or without. When they are on the screen, latencies are asked for. */
export function haveSums(withLatencies: boolean): void {
	if (withLatencies || detail !== "sums") {
		if (withLatencies && detail === "coming") change("latencies");
		return;
	}
	const ask = () => {
		if (detail === "sums") change("coming");
	};
	requestAnimationFrame(() => setTimeout(ask));
	setTimeout(ask, NO_FRAME_MS);
}
