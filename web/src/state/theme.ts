// Dark or light: as the system is set, unless the reader chose.

import { useSyncExternalStore } from "react";
import type { Theme } from "../lib/color";

const KEY = "fathom.theme";
const listeners = new Set<() => void>();

function system(): Theme {
	return window.matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";
}

function chosen(): Theme | null {
	try {
		const value = window.localStorage.getItem(KEY);
		return value === "dark" || value === "light" ? value : null;
	} catch {
		return null;
	}
}

let current: Theme = "dark";

function apply(theme: Theme): void {
	current = theme;
	document.documentElement.dataset["theme"] = theme;
	for (const listener of listeners) listener();
}

export function startTheme(): void {
	apply(chosen() ?? system());
	window.matchMedia("(prefers-color-scheme: light)").addEventListener("change", () => {
		if (chosen() === null) apply(system());
	});
}

export function switchTheme(): void {
	const next = current === "dark" ? "light" : "dark";
	try {
		// The choice that the system makes anyway needs no keeping.
		if (next === system()) window.localStorage.removeItem(KEY);
		else window.localStorage.setItem(KEY, next);
	} catch {
		// Kept for this page only.
	}
	apply(next);
}

export function useTheme(): Theme {
	return useSyncExternalStore(
		(listener) => {
			listeners.add(listener);
			return () => listeners.delete(listener);
		},
		() => current,
	);
}

/** The font of text in canvases: `px` where text is 13 pixels high, and larger where it is larger. */
export function canvasFont(px: number): string {
	const base = Number.parseFloat(getComputedStyle(document.documentElement).fontSize) || 13;
	return `${Math.round((px * base) / 13)}px ${token("--font")}`;
}

/** A color of the style sheet, for canvases: `--ink`, `--line`, ... */
export function token(name: string): string {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
