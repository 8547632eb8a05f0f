// Where the time of calls goes: layer by layer over windows, and request by request.

import { RequestCard } from "../../components/request/card";
import { useTall } from "../../components/useTall";
import { hasRows } from "../../lib/tables";
import { useSession } from "../../state/session";
import { usePage } from "../../state/store";
import { Functions } from "./functions";
import { RequestStacks } from "./requests";
import { Windows } from "./windows";
import "./style.css";

export default function Layers() {
	const { rid } = usePage();
	const height = useTall(340, 0.42);
	const { about } = useSession();
	const missing = about.layers.filter((layer) => !layer.recorded);
	return (
		<div className={rid === null ? "layers" : "layers with-card"}>
			<div className="layers-main">
				{missing.length > 0 ? (
					<p className="layers-missing" role="note">
						Not recorded: {missing.map((layer) => layer.name).join(", ")}. Time spent there is attributed to the layer
						above. <code>--layers all</code> records every layer that the kernel exposes.
					</p>
				) : null}
				<Windows />
				{hasRows(about, "user_calls") ? <Functions /> : null}
				<RequestStacks height={height} />
			</div>
			{rid === null ? null : (
				<aside className="layers-card" aria-label="Selected call">
					<RequestCard rid={rid} />
				</aside>
			)}
		</div>
	);
}
