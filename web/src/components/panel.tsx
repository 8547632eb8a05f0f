import { type ReactNode, useRef } from "react";
import type { Resource } from "../state/resource";
import { savePng } from "./png";
import { Empty, ErrorState, Loading, Progress } from "./states";

interface Props {
	title: string;
	/** The unit, or how to read it, in a few words. */
	note?: ReactNode;
	/** Legend or controls between title and end. */
	head?: ReactNode;
	/** Controls at the end of the head. */
	end?: ReactNode;
	/** A plot on canvases below can be saved as a picture of this name. */
	picture?: string;
	className?: string;
	children: ReactNode;
}

/** A box with a head; everything that a view shows lies in one. */
export function Panel({ title, note, head, end, picture, className, children }: Props) {
	const body = useRef<HTMLDivElement>(null);
	return (
		<section className={className ? `panel ${className}` : "panel"} aria-label={title}>
			<header className="panel-head">
				<div className="panel-about">
					<h2>{title}</h2>
					{note ? (
						<span className="note cut" title={typeof note === "string" ? note : undefined}>
							{note}
						</span>
					) : null}
					{head}
				</div>
				<div className="end">
					{end}
					{picture ? (
						<button
							type="button"
							className="button plain"
							title="Save this plot as a PNG picture"
							onClick={() => body.current && savePng(body.current, title, picture)}
						>
							PNG
						</button>
					) : null}
				</div>
			</header>
			<div className="panel-body" ref={body}>
				{children}
			</div>
		</section>
	);
}

interface ShownProps<T> {
	of: Resource<T>;
	/** Kept while nothing is there, so that nothing moves when it comes. */
	height?: number;
	empty?: (data: T) => boolean;
	emptyTitle?: string;
	emptyText?: ReactNode;
	children: (data: T) => ReactNode;
}

/** The data of a resource, or what stands for them: loading, nothing there, failed. */
export function Shown<T>({ of, height, empty, emptyTitle, emptyText, children }: ShownProps<T>) {
	let content: ReactNode;
	if (of.error && of.data === undefined) content = <ErrorState error={of.error} />;
	else if (of.data === undefined) content = <Loading />;
	else if (!of.stale && empty?.(of.data)) {
		content = (
			<Empty title={emptyTitle ?? "Nothing in this window"}>
				{emptyText ?? "Widen the window (0) or take a filter away."}
			</Empty>
		);
	} else content = children(of.data);
	return (
		<div
			style={
				height === undefined
					? undefined
					: {
							minHeight: height,
							display: "grid",
							gridTemplateColumns: "minmax(0, 1fr)",
							alignContent: of.data === undefined ? "stretch" : "start",
						}
			}
		>
			<Progress on={of.loading && of.data !== undefined} />
			{of.error && of.data !== undefined ? <ErrorState error={of.error} /> : null}
			{content}
		</div>
	);
}
