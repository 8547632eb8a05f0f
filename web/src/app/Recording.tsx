// What can be done to a recording in progress, by clients with role record.

import { useEffect, useRef, useState } from "react";
import { asApiError } from "../api/client";
import { sessionPath } from "../api/session";
import type { SavedAnswer } from "../api/types";
import { sentence } from "../components/states";
import { visible } from "../lib/format";
import { useAccess } from "../state/access";
import { client } from "../state/server";
import { useSession } from "../state/session";

const SAID_MS = 8000;

/** Before the questions that wait for a connection. */
const AT_ONCE: RequestInit = { method: "POST", priority: "high" };

export function Recording() {
	const { id } = useSession();
	const access = useAccess();
	const menu = useRef<HTMLDetailsElement>(null);
	const [said, setSaid] = useState("");
	const [busy, setBusy] = useState(false);
	useEffect(() => {
		if (said === "") return;
		const timer = setTimeout(() => setSaid(""), SAID_MS);
		return () => clearTimeout(timer);
	}, [said]);
	if (!access?.saves) return null;
	const run = async (work: () => Promise<string>) => {
		setBusy(true);
		try {
			setSaid(await work());
		} catch (error) {
			setSaid(sentence(asApiError(error).message));
		}
		setBusy(false);
		if (menu.current) menu.current.open = false;
	};
	const save = async () => {
		const answer = await client.request(sessionPath(id, "/save"), AT_ONCE);
		const { name } = (await answer.json()) as SavedAnswer;
		return `Saved as ${visible(name)}`;
	};
	const stop = async () => {
		await client.request(sessionPath(id, "/stop"), AT_ONCE);
		return "The recording ends";
	};
	const item = (title: string, about: string, work: () => Promise<string>) => (
		<button type="button" className="share-item" disabled={busy} onClick={() => void run(work)}>
			<b>{title}</b>
			<span className="quiet">{about}</span>
		</button>
	);
	return (
		<>
			<span className="share-said" role="status">
				{said}
			</span>
			<details
				className="dropdown share"
				ref={menu}
				onKeyDown={(event) => {
					if (event.key === "Escape" && menu.current) menu.current.open = false;
				}}
			>
				<summary className="button plain" title="Save or stop this recording">
					Save
				</summary>
				<div className="dropdown-list">
					{item("Save now", "A copy of what the recording keeps, as a session next to it. It continues.", save)}
					{access.stops
						? item("Stop recording", "The session is completed. A command that is being recorded continues.", stop)
						: null}
				</div>
			</details>
		</>
	);
}
