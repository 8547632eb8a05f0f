import { visible } from "../lib/format";

/** Text that a traced program chose: shown as it is, with what cannot be seen escaped, never as markup. */
export function Text({ of, className }: { of: string | null | undefined; className?: string }) {
	if (of === null || of === undefined) return <span className="faint">–</span>;
	const text = visible(of);
	return (
		<bdi className={className} title={text}>
			{text}
		</bdi>
	);
}

/** A path: its end is what tells files apart, so the beginning is what is cut where there is no room. */
export function Path({ of }: { of: string | null | undefined }) {
	if (of === null || of === undefined) return <span className="faint">–</span>;
	return (
		<span className="path cut-start mono" title={visible(of)}>
			<bdi dir="ltr">{visible(of)}</bdi>
		</span>
	);
}

/** A small square in a thing's color. CSSOM properties: the security policy forbids style attributes. */
export function Swatch({ color }: { color: string }) {
	return <span className="swatch" style={{ background: color }} aria-hidden="true" />;
}
