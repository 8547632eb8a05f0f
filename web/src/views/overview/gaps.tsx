// What the session does not have: lost calls, layers that were not recorded, damage. Nothing is shown as if it were all.

import type { ReactNode } from "react";
import { Panel } from "../../components/panel";
import { Text } from "../../components/text";
import { count, counted, exact } from "../../lib/format";
import { useSession } from "../../state/session";

export function Gaps() {
	const { about } = useSession();
	const layers = about.layers.filter((layer) => !layer.recorded && layer.reason !== "");
	const rows: { what: string; text: ReactNode }[] = [
		...about.problems.map((problem) => ({ what: "damage", text: <Text of={problem} /> })),
		...about.losses.slice(0, 12).map((loss) => ({
			what: "lost",
			text: (
				<span title={`${exact(loss.count)}, ${counted(loss.bytes, "byte")}`}>
					{loss.layer === "syscall"
						? `${counted(loss.count, "call", "calls", count)} ${loss.syscall}, at stage ${loss.stage}: in the sums of calls, bytes and latencies; single calls are missing`
						: `${counted(loss.count, "record", "records", count)} of layer ${loss.layer} (${loss.syscall}), at stage ${loss.stage}: their time counts as the call's own`}
				</span>
			),
		})),
		...layers.map((layer) => ({
			what: "layer",
			text: (
				<>
					{layer.name}: <Text of={layer.reason} />
				</>
			),
		})),
		...about.missing_hooks.map((hook) => ({
			what: "hook",
			text: (
				<>
					<span className="mono">{hook.name}</span>: <Text of={hook.note} />
				</>
			),
		})),
		...about.not_observable.map((what) => ({ what: "not observable", text: <Text of={what} /> })),
	];
	if (rows.length === 0) return null;
	return (
		<Panel title="Missing data" note="in the whole session">
			<dl className="facts gaps">
				{rows.map((row, i) => (
					<div className="gap" key={i}>
						<dt>{row.what}</dt>
						<dd>{row.text}</dd>
					</div>
				))}
			</dl>
		</Panel>
	);
}
