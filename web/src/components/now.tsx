import type { Span } from "../lib/scale";
import { useMaybeSession } from "../state/session";

interface Props {
	span: Span;
	/** Where the span begins, and how wide it is, in pixels. */
	left: number;
	wide: number;
	/** Up to where answers reach; the newest row of the session without it. */
	known?: number | undefined;
	/** Its name stands at it. */
	named?: boolean;
}

/** Where the newest rows of a running recording stand; null where that is out of sight. */
export function nowAt(span: Span, newest: number, known: number | undefined): number | null {
	const now = Math.min(newest, known ?? newest);
	return now > span.from && now <= span.to ? (now - span.from) / (span.to - span.from) : null;
}

/** The edge of what a running recording has by now: what is empty behind it is not there yet. */
export function NowEdge({ span, left, wide, known, named = false }: Props) {
	const session = useMaybeSession();
	const at = session?.live ? nowAt(span, session.bounds.to, known) : null;
	if (at === null || wide <= 0) return null;
	return (
		<div className="now-edge" aria-hidden="true" style={{ left: left + at * wide, width: (1 - at) * wide }}>
			{named ? <span>now</span> : null}
		</div>
	);
}
