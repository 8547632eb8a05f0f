import { type RefObject, useEffect, useState } from "react";

export interface Size {
	width: number;
	height: number;
}

/** The size of an element, now and whenever it changes. */
export function useSize(element: RefObject<HTMLElement | null>): Size {
	const [size, setSize] = useState<Size>({ width: 0, height: 0 });
	useEffect(() => {
		const target = element.current;
		if (!target) return;
		const observer = new ResizeObserver(() => {
			const width = Math.floor(target.clientWidth);
			const height = Math.floor(target.clientHeight);
			setSize((before) => (before.width === width && before.height === height ? before : { width, height }));
		});
		observer.observe(target);
		return () => observer.disconnect();
	}, [element]);
	return size;
}
