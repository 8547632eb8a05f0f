// Answers that are there before the page is first drawn, so that it is drawn once, with its plots.

import { type RefObject, useLayoutEffect, useState } from "react";
import { columns } from "../api/session";
import { arrived } from "./early";
import { client } from "./server";

/** So long the page waits for them; then it is drawn as far as it can be. */
const WAIT_MS = 100;

const answers = new Map<string, unknown>();

/** Takes the answers to the early questions, as far as they are there soon. */
export async function takeFirst(): Promise<void> {
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

/** Whether the first frame with answers is on the screen; null until there is something to draw in it. */
let isDrawn: boolean | null = null;
const waiting = new Set<() => void>();

/** So long the frame is waited for: a page in the background has none. */
const NO_FRAME_MS = 200;

/** Waits until the frame that is being made is on the screen, and the page at rest. */
function watchFrame(): void {
	isDrawn = false;
	const done = () => {
		isDrawn = true;
		for (const go of [...waiting]) go();
		waiting.clear();
	};
	// Not every browser says when it is idle.
	if ("requestIdleCallback" in window) {
		requestAnimationFrame(() => requestIdleCallback(done, { timeout: NO_FRAME_MS }));
	}
	setTimeout(done, NO_FRAME_MS);
}

/**
 * Whether to draw the content of `element` now that it is `ready`: what is below the edge of the window when the page first
 * has something to draw comes after that frame.
 */
export function useInFrame(element: RefObject<HTMLElement | null>, ready: boolean): boolean {
	const [is, set] = useState(isDrawn === true);
	useLayoutEffect(() => {
		if (is || !ready) return;
		const go = () => set(true);
		if (isDrawn === null) watchFrame();
		if (isDrawn || (element.current?.getBoundingClientRect().top ?? 0) < window.innerHeight) {
			go();
			return;
		}
		waiting.add(go);
		return () => {
			waiting.delete(go);
		};
	}, [is, ready, element]);
	return is;
}
