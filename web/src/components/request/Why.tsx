import type { Story } from "../../api/why";
import { useJson } from "../../state/session";
import { StoryText } from "../story";

/** Why a call took so long, in a sentence or two. */
export function Why({ rid }: { rid: number }) {
	const story = useJson<Story>({ path: "why", params: { rid }, windowed: false, filtered: false });
	if (story.error) return null;
	return (
		<div className="request-why" aria-busy={story.data === undefined}>
			{story.data && !story.stale ? <StoryText story={story.data} /> : null}
		</div>
	);
}
