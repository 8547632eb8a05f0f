// The layers in their order, with what they mean.

import { LAYERS } from "../api/layers";

const ORDER: ReadonlyMap<string, number> = new Map(LAYERS.map((layer, i) => [layer.name, i]));

/** From the program down to the device, then what takes the CPU away. */
export function byLayer(a: string, b: string): number {
	const place = (layer: string) => ORDER.get(layer) ?? LAYERS.length;
	return place(a) - place(b) || a.localeCompare(b);
}

/** What a layer is, for readers who do not know its name. */
export function meaningOf(layer: string): string | undefined {
	return LAYERS.find((known) => known.name === layer)?.meaning;
}
