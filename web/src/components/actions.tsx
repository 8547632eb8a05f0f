// A menu of actions, each of which says beside the menu what came of it.

import { useEffect, useRef, useState } from "react";
import { asApiError } from "../api/client";
import { sentence } from "./states";

/** How long it is said, ms. */
const SAID_MS = 6000;

export interface Action {
	title: string;
	about: string;
	/** Resolves to what came of it. `say` tells how far it is. */
	act: (say: (text: string) => void) => Promise<string>;
	/** The menu stays open: the action takes no time, and others often follow. */
	stays?: boolean;
}

export function Actions({ name, title, actions }: { name: string; title: string; actions: Action[] }) {
	const menu = useRef<HTMLDetailsElement>(null);
	const [said, setSaid] = useState("");
	const [busy, setBusy] = useState(false);
	useEffect(() => {
		if (said === "" || busy) return;
		const timer = setTimeout(() => setSaid(""), SAID_MS);
		return () => clearTimeout(timer);
	}, [said, busy]);
	const run = async ({ title, act, stays }: Action) => {
		setBusy(true);
		if (!stays) setSaid(`${title} …`);
		try {
			setSaid(await act(setSaid));
		} catch (error) {
			setSaid(sentence(asApiError(error).message));
		}
		setBusy(false);
		if (!stays && menu.current) menu.current.open = false;
	};
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
				<summary className="button plain" title={title}>
					{name}
				</summary>
				<div className="dropdown-list">
					{actions.map((action) => (
						<button
							key={action.title}
							type="button"
							className="share-item"
							disabled={busy}
							onClick={() => void run(action)}
						>
							<b>{action.title}</b>
							<span className="quiet">{action.about}</span>
						</button>
					))}
				</div>
			</details>
		</>
	);
}
