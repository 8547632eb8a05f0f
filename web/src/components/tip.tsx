import { type ReactNode, useLayoutEffect, useRef } from "react";
import { createPortal } from "react-dom";
import { Swatch } from "./text";

interface Props {
	/** Of the pointer, in the window. */
	x: number;
	y: number;
	children: ReactNode;
}

/** Exact values beside the pointer; stays inside the window. */
export function Tip({ x, y, children }: Props) {
	const box = useRef<HTMLDivElement>(null);
	useLayoutEffect(() => {
		const element = box.current;
		if (!element) return;
		const { width, height } = element.getBoundingClientRect();
		let left = x + 14;
		if (left + width > window.innerWidth - 8) left = Math.max(8, x - width - 14);
		let top = y + 16;
		if (top + height > window.innerHeight - 8) top = Math.max(8, y - height - 12);
		element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
	});
	return createPortal(
		<div className="tip" ref={box} role="tooltip">
			{children}
		</div>,
		document.body,
	);
}

export interface TipRow {
	label: ReactNode;
	value: string;
	color?: string;
}

export function TipRows({ rows }: { rows: readonly TipRow[] }) {
	return (
		<table>
			<tbody>
				{rows.map((row, i) => (
					<tr key={i}>
						<td>
							{row.color ? <Swatch color={row.color} /> : null}
							<span className="quiet">{row.label}</span>
						</td>
						<td className="number">{row.value}</td>
					</tr>
				))}
			</tbody>
		</table>
	);
}
