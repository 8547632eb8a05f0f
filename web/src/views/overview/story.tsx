// Where the time of the window went, in a few sentences.

import { useEffect, useState } from "react";
import type { Diagnosis } from "../../api/diagnosis";
import type { Story as Told } from "../../api/why";
import { Shown } from "../../components/panel";
import { plainText, StoryText } from "../../components/story";
import type { Resource } from "../../state/resource";
import { useJson } from "../../state/session";

/** An explanation that is not there after so long is asked for without advice. */
const LATE_MS = 600;

export function Story({ diagnosis }: { diagnosis: Resource<Diagnosis> }) {
	// With the advice of the diagnosis; where that takes long, the rest comes before it.
	const wanted = diagnosis.loading || diagnosis.data !== undefined;
	const full = useJson<Told>(wanted ? { path: "why", params: { findings: 1 }, turn: "later" } : null);
	const told = full.data !== undefined && !full.stale;
	const late = useLate(!told);
	const quick = useJson<Told>(late && !told ? { path: "why", turn: "later" } : null);
	const story = told || quick.data === undefined ? full : quick;
	return (
		<section className="panel story" aria-label="In short">
			<Shown of={story} height={42}>
				{(data) => (
					<div className="story-row">
						<StoryText
							story={data}
							more={
								told || full.error || diagnosis.data || diagnosis.error ? null : (
									<span className="faint"> The rules are still reading the calls.</span>
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

/** Whether `waiting` has lasted for a while. */
function useLate(waiting: boolean): boolean {
	const [late, setLate] = useState(false);
	useEffect(() => {
		setLate(false);
		if (!waiting) return;
		const timer = setTimeout(() => setLate(true), LATE_MS);
		return () => clearTimeout(timer);
	}, [waiting]);
	return late;
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
