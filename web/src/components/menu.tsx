// What can be done with one thing: opened by a click on its row, at the pointer.

import { type ReactNode, useEffect, useLayoutEffect, useRef } from "react";
import { createPortal } from "react-dom";

export interface MenuEntry {
	label: string;
	/** Why it is of use, in a few words. */
	note?: string;
	run: () => void;
}

interface Props {
	/** Of the pointer, in the window. */
	x: number;
	y: number;
	title: ReactNode;
	entries: readonly MenuEntry[];
	close: () => void;
}

export function Menu({ x, y, title, entries, close }: Props) {
	const box = useRef<HTMLDivElement>(null);
	useLayoutEffect(() => {
		const element = box.current;
		if (!element) return;
		const { width, height } = element.getBoundingClientRect();
		const left = Math.max(8, Math.min(x, window.innerWidth - width - 8));
		const top = y + height > window.innerHeight - 8 ? Math.max(8, y - height) : y;
		element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
	}, [x, y]);
	const latest = useRef(close);
	latest.current = close;
	useEffect(() => {
		const before = document.activeElement;
		box.current?.querySelector("button")?.focus();
		const outside = (event: Event) => {
			if (event.target instanceof Node && !box.current?.contains(event.target)) latest.current();
		};
		window.addEventListener("pointerdown", outside, true);
		window.addEventListener("resize", outside);
		return () => {
			window.removeEventListener("pointerdown", outside, true);
			window.removeEventListener("resize", outside);
			if (before instanceof HTMLElement) before.focus({ preventScroll: true });
		};
	}, []);
	const step = (by: number) => {
		const buttons = [...(box.current?.querySelectorAll("button") ?? [])];
		const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
		buttons[(at + by + buttons.length) % buttons.length]?.focus();
	};
	return createPortal(
		<div
			className="menu"
			ref={box}
			role="menu"
			tabIndex={-1}
			onKeyDown={(event) => {
				if (event.key === "Escape" || event.key === "Tab") close();
				else if (event.key === "ArrowDown") step(1);
				else if (event.key === "ArrowUp") step(-1);
				else return;
				event.preventDefault();
				event.stopPropagation();
			}}
		>
			<div className="menu-title cut" role="presentation">
				{title}
			</div>
			{entries.map((entry) => (
				<button
					type="button"
					role="menuitem"
					key={entry.label}
					onClick={() => {
						close();
						entry.run();
					}}
				>
					{entry.label}
					{entry.note ? <span className="faint"> {entry.note}</span> : null}
				</button>
			))}
		</div>,
		document.body,
	);
}
