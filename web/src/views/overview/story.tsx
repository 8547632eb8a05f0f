// The session in a few sentences.

import type { Diagnosis } from "../../api/diagnosis";
import { visible } from "../../lib/format";
import type { Resource } from "../../state/resource";

export function Story({ diagnosis }: { diagnosis: Resource<Diagnosis> }) {
	const sentences = diagnosis.data?.summary.sentences;
	return (
		<section className="panel story" aria-label="In short" aria-busy={!sentences && !diagnosis.error}>
			{sentences ? (
				<p>{visible(sentences.join(" "))}</p>
			) : (
				<p className="faint">Reading every call of the session ...</p>
			)}
		</section>
	);
}
