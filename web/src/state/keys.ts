// Keyboard shortcuts: each is registered with what it does, and the help sheet lists those that work now.

import { useEffect, useRef, useSyncExternalStore } from "react";

export interface Shortcut {
	/** As in `KeyboardEvent.key`; several for the same thing. */
	keys: readonly string[];
	what: string;
	/** The heading in the help sheet. */
	group: string;
}

interface Entry extends Shortcut {
	run: (event: KeyboardEvent) => void;
}

let entries: readonly Entry[] = [];
const listeners = new Set<() => void>();

function change(next: readonly Entry[]): void {
	entries = next;
	for (const listener of listeners) listener();
}

/** Typing into a field is not a shortcut; nor is a key of the browser's own. */
function meant(event: KeyboardEvent): boolean {
	if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return false;
	const target = event.target;
	if (!(target instanceof HTMLElement)) return true;
	// Enter presses what has the focus.
	if (event.key === "Enter" && target.closest("a, button, summary, [role='grid']")) return false;
	return !target.matches("input, textarea, select, [contenteditable], [contenteditable] *");
}

export function listenForKeys(): void {
	window.addEventListener("keydown", (event) => {
		if (!meant(event)) return;
		// The newest first: what lies above the page goes before it.
		for (let i = entries.length - 1; i >= 0; i -= 1) {
			const entry = entries[i];
			if (entry?.keys.includes(event.key)) {
				event.preventDefault();
				entry.run(event);
				return;
			}
		}
	});
}

export function useShortcut(
	keys: readonly string[],
	what: string,
	group: string,
	run: (event: KeyboardEvent) => void,
): void {
	const latest = useRef(run);
	latest.current = run;
	const joined = keys.join(" ");
	useEffect(() => {
		const entry: Entry = { keys: joined.split(" "), what, group, run: (event) => latest.current(event) };
		change([...entries, entry]);
		return () => change(entries.filter((e) => e !== entry));
	}, [joined, what, group]);
}

export function useShortcuts(): readonly Shortcut[] {
	return useSyncExternalStore(
		(listener) => {
			listeners.add(listener);
			return () => listeners.delete(listener);
		},
		() => entries,
	);
}
