// The sentences of an explanation, whose names and numbers lead on.

import type { ReactNode } from "react";
import type { Filter } from "../api/types";
import type { Piece, Story, Link as Target } from "../api/why";
import { mergeFilters } from "../lib/filters";
import { visible } from "../lib/format";
import { type store, useRestedPage } from "../state/store";
import { Link } from "./link";

type Patch = Parameters<typeof store.href>[0];

/** Where a name or a number leads, under the page's filter. */
export function targetOf(link: Target, filter: Filter): { to: Patch; title: string } {
	const only = (more: Filter) => mergeFilters(filter, more);
	const slowest = { view: "table", params: { sort: "-dur_ns" } };
	switch (link.to) {
		case "request":
			return { to: { view: "request", rid: link.rid }, title: "This call through the layers" };
		case "file":
			return { to: { view: "file", params: { file: String(link.file_id) } }, title: "Accesses to this file by offset" };
		case "process":
			return { to: { view: "timeline", filter: only({ pid: [link.pid] }) }, title: "The timeline of this process" };
		case "thread":
			return { to: { view: "timeline", filter: only({ tid: [link.tid] }) }, title: "The timeline of this thread" };
		case "comm":
			return { to: { view: "timeline", filter: only({ comm: [link.comm] }) }, title: "The timeline of these threads" };
		case "device":
			return { to: { view: "devices", params: { device: link.device } }, title: "The queue of this device" };
		case "layer":
			return {
				to: { ...slowest, filter: only({ layer: [link.layer] }) },
				title: "The calls that spent time there, slowest first",
			};
		case "syscall":
			return { to: { ...slowest, filter: only({ syscall: [link.syscall] }) }, title: "These calls, slowest first" };
		case "finding":
			return {
				to: { view: "overview", params: { finding: link.rule } },
				title: `The finding of rule ${link.rule}: evidence and examples`,
			};
	}
}

export function StoryText({ story, more }: { story: Story; more?: ReactNode }) {
	return (
		<p className="story-text">
			{story.sentences.map((sentence, i) => (
				<span key={i}>
					{i > 0 ? " " : null}
					{sentence.pieces.map((piece, at) => (
						<PieceText key={at} piece={piece} />
					))}
				</span>
			))}
			{more}
		</p>
	);
}

function PieceText({ piece }: { piece: Piece }) {
	const { filter } = useRestedPage();
	const text = <bdi>{visible(piece.text)}</bdi>;
	if (!piece.link) return text;
	const { to, title } = targetOf(piece.link, filter);
	return (
		<Link to={to} title={title} className="story-link">
			{text}
		</Link>
	);
}

/** The same as plain text, to be pasted elsewhere. */
export function plainText(story: Story): string {
	return story.sentences.map((sentence) => sentence.pieces.map((piece) => visible(piece.text)).join("")).join(" ");
}
