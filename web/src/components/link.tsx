import type { MouseEvent, ReactNode } from "react";
import { store, useRestedPage } from "../state/store";
import { isThere } from "./saved";

interface Props {
	/** What differs from the page's state. */
	to: Parameters<typeof store.href>[0];
	className?: string;
	title?: string;
	current?: boolean;
	children: ReactNode;
}

/** A link to another state of the page: opens in place, or in a new tab as the reader asks the browser for. */
export function Link({ to, className, title, current, children }: Props) {
	// Addresses hold the whole state, so they change with it.
	useRestedPage();
	// A saved page leads nowhere that it does not have; what else the text says remains.
	if (!isThere(to))
		return className?.split(" ").includes("button") ? null : <span className={className}>{children}</span>;
	const open = (event: MouseEvent) => {
		if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
		event.preventDefault();
		store.go(to);
	};
	return (
		<a
			href={store.href(to)}
			className={className}
			title={title}
			aria-current={current ? "page" : undefined}
			onClick={open}
		>
			{children}
		</a>
	);
}
