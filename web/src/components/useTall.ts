import { useSyncExternalStore } from "react";

function listen(listener: () => void): () => void {
	window.addEventListener("resize", listener);
	return () => window.removeEventListener("resize", listener);
}

/** A height that makes use of a tall window: a share of it, and no less than `least`. In steps, for quiet resizing. */
export function useTall(least: number, share: number): number {
	const tall = useSyncExternalStore(listen, () => Math.floor(window.innerHeight / 20) * 20);
	return Math.max(least, Math.round(tall * share));
}
