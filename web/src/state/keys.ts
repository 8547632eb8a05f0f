// Keyboard shortcuts: each is registered with what it does, and the help sheet lists those that work now.

import { useLayoutEffect, useRef, useSyncExternalStore } from "react";

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

/** Runs what a key stands for; false when it stands for nothing now. */
function run(event: KeyboardEvent): boolean {
	// The newest first: what lies above the page goes before it.
	for (let i = entries.length - 1; i >= 0; i -= 1) {
		const entry = entries[i];
		if (entry?.keys.includes(event.key)) {
			entry.run(event);
			return true;
		}
	}
	return false;
}

/** How many parts of the page are still to come, whose keys are not known yet. */
let coming = 0;
/** Keys that were pressed meanwhile, in their order. */
let held: KeyboardEvent[] = [];
/** More than that nobody presses on purpose before anything is to be seen. */
const MOST_HELD = 64;

export function listenForKeys(): void {
	window.addEventListener("keydown", (event) => {
		if (!meant(event)) return;
		// What follows a key that waits waits, too: it may be text for the field that the key leads to.
		if (held.length > 0 || (coming > 0 && !entries.some((entry) => entry.keys.includes(event.key)))) {
			if (held.length < MOST_HELD && isTyped(event)) {
				held.push(event);
				event.preventDefault();
			}
			return;
		}
		if (run(event)) event.preventDefault();
	});
}

/** A character, or a key that does something; not one that is held down with others. */
function isTyped(event: KeyboardEvent): boolean {
	return event.key.length === 1 || ["Enter", "Escape", "Backspace"].includes(event.key);
}

/** Does what the held keys ask for, as if they were pressed now. */
function release(): void {
	const keys = held;
	held = [];
	for (const event of keys) {
		const field = document.activeElement;
		if (field instanceof HTMLInputElement) typeInto(field, event.key);
		else run(event);
	}
}

/** As the browser does with a key that a field gets; keys that are no text are the field's own affair. */
function typeInto(field: HTMLInputElement, key: string): void {
	if (key.length > 1) {
		field.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
		return;
	}
	// Past React's own setter, which takes a value that was set for one that it knows.
	const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")?.set;
	set?.call(field, field.value + key);
	field.dispatchEvent(new InputEvent("input", { bubbles: true, data: key, inputType: "insertText" }));
}

/** Says that a part of the page is still to come: keys that mean nothing yet wait for it. */
export function useComing(is: boolean): void {
	// After those of the parts below, which register their keys: effects of children run first.
	useLayoutEffect(() => {
		if (!is) return;
		coming += 1;
		return () => {
			coming -= 1;
			// In the same commit the part registers its keys, and perhaps another is to come.
			queueMicrotask(() => coming === 0 && release());
		};
	}, [is]);
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
	// Before the browser shows it: a key that is pressed on what is to be seen is not lost.
	useLayoutEffect(() => {
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
