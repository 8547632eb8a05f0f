// Which rows of a long table are on the screen. Browsers limit how high an element may be, so beyond that the scroll
// bar stands for a share of the rows instead of for pixels.

/** No browser's limit is below this. */
export const MOST_PIXELS = 8_000_000;

export interface Slice {
	/** The first row to draw, and the one after the last. */
	first: number;
	end: number;
	/** Where the first row stands, from the top of the scrolled content. */
	top: number;
}

export function contentHeight(rows: number, rowHeight: number): number {
	return Math.min(rows * rowHeight, MOST_PIXELS);
}

/** The rows at a scroll position. */
export function sliceAt(scroll: number, viewport: number, rows: number, rowHeight: number): Slice {
	const all = rows * rowHeight;
	const content = contentHeight(rows, rowHeight);
	const most = Math.max(0, content - viewport);
	const at = Math.min(Math.max(scroll, 0), most);
	// Pixels that the rows would be scrolled by if they were all there.
	const virtual = all > content && most > 0 ? (at / most) * (all - viewport) : at;
	const first = Math.max(0, Math.min(rows, Math.floor(virtual / rowHeight)));
	const end = Math.min(rows, Math.ceil((virtual + viewport) / rowHeight) + 1);
	return { first, end, top: at - (virtual - first * rowHeight) };
}

/** The scroll position at which a row is on the screen; null when it is already. */
export function scrollFor(
	row: number,
	scroll: number,
	viewport: number,
	rows: number,
	rowHeight: number,
): number | null {
	const all = rows * rowHeight;
	const content = contentHeight(rows, rowHeight);
	const most = Math.max(0, content - viewport);
	const room = Math.max(0, all - viewport);
	const virtual = all > content && most > 0 ? (scroll / most) * room : scroll;
	let wanted: number;
	if (row * rowHeight < virtual) wanted = row * rowHeight;
	else if ((row + 1) * rowHeight > virtual + viewport) wanted = (row + 1) * rowHeight - viewport;
	else return null;
	return all > content && room > 0 ? (wanted / room) * most : wanted;
}
