// Pictures that are SVG already: saved as they are.

import { store } from "../state/store";
import { saveBlob, savedName } from "./save";

/** Offers the first picture below an element for download. */
export function saveSvg(element: Element | null, name: string): void {
	const picture = element?.querySelector("svg");
	if (!picture) return;
	const copy = picture.cloneNode(true) as SVGElement;
	copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
	copy.setAttribute("font-family", "system-ui, sans-serif");
	const blob = new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
	saveBlob(blob, `${savedName(store.get().session, name)}.svg`);
}
