// Pictures that are SVG already: saved as they are.

/** Offers the first picture below an element for download. */
export function saveSvg(element: Element | null, name: string): void {
	const picture = element?.querySelector("svg");
	if (!picture) return;
	const copy = picture.cloneNode(true) as SVGElement;
	copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
	copy.setAttribute("font-family", "system-ui, sans-serif");
	const blob = new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
	const link = document.createElement("a");
	link.href = URL.createObjectURL(blob);
	link.download = `${name}.svg`;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
