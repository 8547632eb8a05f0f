import type { ReactNode } from "react";
import type { ApiError } from "../api/client";
import { visible } from "../lib/format";

/** There is nothing to show, and what would change that. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
	return (
		<div className="state">
			<h2>{title}</h2>
			{children ? <p>{children}</p> : null}
		</div>
	);
}

interface ErrorProps {
	error: ApiError;
	/** What went wrong, where the page knows it better than the server. */
	what?: string | undefined;
	children?: ReactNode;
}

/** What went wrong, with what, and what to do. */
export function ErrorState({ error, what, children }: ErrorProps) {
	return (
		<div className="state error" role="alert">
			<h2>{sentence(what ?? error.what)}</h2>
			{error.subject ? <p className="mono">{visible(error.subject)}</p> : null}
			{error.next ? <p>{sentence(error.next)}</p> : null}
			{children}
		</div>
	);
}

/** Stands where data will be, as high as they will be. */
export function Loading() {
	return (
		<div className="state" aria-busy="true">
			<span className="only-read">Loading</span>
		</div>
	);
}

/** A thin line that says that newer data are on their way, when that takes a while. */
export function Progress({ on }: { on: boolean }) {
	return <div className={on ? "progress on" : "progress"} aria-hidden="true" />;
}

export function sentence(text: string): string {
	return text.charAt(0).toUpperCase() + text.slice(1);
}
