import { type RefObject, useLayoutEffect, useState } from "react";

export interface Size {
	width: number;
	height: number;
}

/** The size of an element, now and whenever it changes. */
export function useSize(element: RefObject<HTMLElement | null>): Size {
	const [size, setSize] = useState<Size>({ width: 0, height: 0 });
	// Before the first frame, so that what depends on it is in that frame.
	useLayoutEffect(() => {
		const target = element.current;
		if (!target) return;
		const look = () => {
			const width = Math.floor(target.clientWidth);
			const height = Math.floor(target.clientHeight);
			setSize((before) => (before.width === width && before.height === height ? before : { width, height }));
		};
		look();
		const observer = new ResizeObserver(look);
		observer.observe(target);
		return () => observer.disconnect();
	}, [element]);
	return size;
}
