// The part of a file that is shown: offsets, in the address like everything that is shown.

import { useMemo } from "react";
import type { Span } from "../../lib/scale";
import { useParam } from "../../state/store";

/** Its name in the address. */
export const PART = "part";

/** Offsets that a double holds exactly. */
export const FILE_BOUNDS: Span = { from: 0, to: 2 ** 53 };

/** No narrower part is shown, bytes. */
export const MIN_PART = 64;

export function partText(part: Span): string {
	const from = Math.max(0, Math.floor(part.from));
	return `${from}-${Math.max(from + MIN_PART, Math.ceil(part.to))}`;
}

/** Null for all of it, also where the address says nothing sensible. */
export function parsePart(text: string): Span | null {
	const found = /^(\d{1,16})-(\d{1,16})$/.exec(text);
	if (!found) return null;
	const part = { from: Number(found[1]), to: Number(found[2]) };
	return part.to > part.from && part.to <= FILE_BOUNDS.to ? part : null;
}

export function usePart(): Span | null {
	const [text] = useParam(PART, "");
	return useMemo(() => parsePart(text), [text]);
}
