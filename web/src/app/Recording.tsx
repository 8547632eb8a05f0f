// What can be done to a recording in progress, by clients with role record.

import { sessionPath } from "../api/session";
import type { SavedAnswer } from "../api/types";
import { type Action, Actions } from "../components/actions";
import { visible } from "../lib/format";
import { useAccess } from "../state/access";
import { client } from "../state/server";
import { useSession } from "../state/session";

/** Before the questions that wait for a connection. */
const AT_ONCE: RequestInit = { method: "POST", priority: "high" };

export function Recording() {
	const { id } = useSession();
	const access = useAccess();
	if (!access?.saves) return null;
	const actions: Action[] = [
		{
			title: "Save now",
			about: "A copy of what the recording keeps, as a session next to it. It continues.",
			act: async () => {
				const answer = await client.request(sessionPath(id, "/save"), AT_ONCE);
				const { name } = (await answer.json()) as SavedAnswer;
				return `Saved as ${visible(name)}`;
			},
		},
	];
	if (access.stops) {
		actions.push({
			title: "Stop recording",
			about: "The session is completed. A command that is being recorded continues.",
			act: async () => {
				await client.request(sessionPath(id, "/stop"), AT_ONCE);
				return "The recording ends";
			},
		});
	}
	return <Actions name="Save" title="Save or stop this recording" actions={actions} />;
}
