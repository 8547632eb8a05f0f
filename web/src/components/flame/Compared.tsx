// The flame graphs of two sessions as one: how each frame has changed.

import { useMemo, useState } from "react";
import { columns, sessionPath } from "../../api/session";
import { flameOf, LEVELS, type Level } from "../../lib/flame";
import { duration } from "../../lib/format";
import { useResource } from "../../state/resource";
import { client } from "../../state/server";
import { Panel, Shown } from "../panel";
import { Flame } from "./Flame";
import { Order } from "./Order";
import { flameRows, ruleOf } from "./rows";

interface Props {
	/** Ids of the sessions. */
	before: string;
	after: string;
}

function useFlame(id: string) {
	const path = sessionPath(id, "/flame");
	return useResource(path, (signal) => columns(client, path, signal), 0);
}

export function FlameCompared({ before, after }: Props) {
	const [order, setOrder] = useState<readonly Level[]>(LEVELS);
	const [focus, setFocus] = useState<readonly string[]>([]);
	const old = useFlame(before);
	const now = useFlame(after);
	const root = useMemo(
		() => (old.data && now.data ? flameOf(flameRows(now.data), order, flameRows(old.data), ruleOf(now.data)) : null),
		[old.data, now.data, order],
	);
	const both = { ...now, data: root ?? undefined, loading: old.loading || now.loading, error: old.error ?? now.error };
	return (
		<Panel
			title="Time in calls, compared"
			note={
				root
					? `${duration(root.before)} before, ${duration(root.ns)} after; orange: more time, blue: less; as wide as the larger side`
					: ""
			}
			end={
				<Order
					order={order}
					setOrder={(next) => {
						setOrder(next);
						setFocus([]);
					}}
				/>
			}
			picture="flame-compared"
		>
			<Shown of={both} height={(order.length + 1) * 24 + 60} empty={(tree) => tree.ns === 0 && tree.before === 0}>
				{(tree) => (
					<Flame
						root={tree}
						levels={order.length}
						focus={focus}
						setFocus={setFocus}
						compared
						label={`Difference of the time in calls by ${order.join(", ")}`}
					/>
				)}
			</Shown>
		</Panel>
	);
}
