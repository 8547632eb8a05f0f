// Where the time of the window went, in a few sentences.

import { useState } from "react";
import type { Diagnosis } from "../../api/diagnosis";
import type { Story as Told } from "../../api/why";
import { Shown } from "../../components/panel";
import { plainText, StoryText } from "../../components/story";
import type { Resource } from "../../state/resource";
import { useJson } from "../../state/session";

export function Story({ diagnosis }: { diagnosis: Resource<Diagnosis> }) {
	// The diagnosis adds its advice, but takes longer than the rest.
	const quick = useJson<Told>({ path: "why" });
	const full = useJson<Told>(diagnosis.data ? { path: "why", params: { findings: 1 } } : null);
	const story = full.data && !full.stale ? full : quick;
	return (
		<section className="panel story" aria-label="In short">
			<Shown of={story} height={42}>
				{(data) => (
					<div className="story-row">
						<StoryText
							story={data}
							more={
								full.data || full.error || diagnosis.error ? null : (
									<span className="faint"> The rules are still reading the calls; their advice follows.</span>
								)
							}
						/>
						<Copy story={data} />
					</div>
				)}
			</Shown>
		</section>
	);
}

function Copy({ story }: { story: Told }) {
	const [said, setSaid] = useState("Copy");
	const copy = () =>
		navigator.clipboard.writeText(plainText(story)).then(
			() => setSaid("Copied"),
			() => setSaid("Not allowed"),
		);
	return (
		<button
			type="button"
			className="button plain"
			title="Copy these sentences"
			onClick={copy}
			onBlur={() => setSaid("Copy")}
		>
			{said}
		</button>
	);
}
