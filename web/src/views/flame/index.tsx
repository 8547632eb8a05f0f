// Where the time of calls went, as one picture: by process, file, call, layer, and who was ahead on the device.

import { useMemo } from "react";
import { Flame } from "../../components/flame/Flame";
import { Order, orderOf } from "../../components/flame/Order";
import { flameRows, ruleOf } from "../../components/flame/rows";
import { Panel, Shown } from "../../components/panel";
import { flameOf, type Level } from "../../lib/flame";
import { count, counted, duration } from "../../lib/format";
import { useColumns } from "../../state/session";
import { store, useParam, useRestedPage } from "../../state/store";

export default function FlameView() {
	const [orderText] = useParam("levels", "");
	const focusText = useRestedPage().params["focus"] ?? "";
	const order = useMemo(() => orderOf(orderText), [orderText]);
	const focus = useMemo(() => namesOf(focusText), [focusText]);
	const answer = useColumns({ path: "flame" });
	const root = useMemo(
		() => (answer.data ? flameOf(flameRows(answer.data), order, undefined, ruleOf(answer.data)) : null),
		[answer.data, order],
	);
	const setOrder = (next: readonly Level[]) =>
		// Names lead elsewhere in another order.
		store.go({ params: { levels: next.join(","), focus: null } });
	const setFocus = (names: readonly string[]) =>
		store.go({ params: { focus: names.length > 0 ? JSON.stringify(names) : null } });
	const others = answer.data?.metaNumber("other_files") ?? 0;
	return (
		<Panel
			title="Time in calls"
			note={
				root
					? `${duration(root.ns)} in all; click a frame to zoom${others > 0 ? `; ${counted(others, "file", "files", count)} with little time share frames` : ""}`
					: ""
			}
			end={<Order order={order} setOrder={setOrder} />}
			picture="flame"
		>
			<Shown of={answer} height={(order.length + 1) * 24 + 60} empty={(data) => data.rows === 0}>
				{() =>
					root && (
						<>
							{answer.data?.metaFlag("layers") === false ? (
								<p className="quiet flame-note">
									There are too many calls here to split each by layer. A window with fewer of them shows the layers.
								</p>
							) : null}
							<Flame
								root={root}
								levels={order.length}
								focus={focus}
								setFocus={setFocus}
								label={`Time in calls by ${order.join(", ")}`}
							/>
						</>
					)
				}
			</Shown>
		</Panel>
	);
}

/** Names from an address, which anyone may have written. */
function namesOf(text: string): string[] {
	try {
		const value: unknown = JSON.parse(text || "[]");
		return Array.isArray(value) && value.every((v) => typeof v === "string") ? value : [];
	} catch {
		return [];
	}
}
