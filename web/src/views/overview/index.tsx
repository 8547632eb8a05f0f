// What happened, how much, how fast, and who did it.

import { useParam } from "../../state/store";
import { Findings } from "./findings";
import { Gaps } from "./gaps";
import { Latency, Throughput } from "./plots";
import { Summary } from "./summary";
import { Top } from "./top";
import { useTotals } from "./totals";
import "./style.css";

const TOPS = ["file", "syscall", "thread"] as const;

export default function Overview() {
	const totals = useTotals();
	const [by, setBy] = useParam("by", "syscall");
	return (
		<div className="overview">
			<Summary totals={totals} />
			<div className="overview-plots">
				<Throughput by={by} setBy={setBy} totals={totals} />
				<Latency totals={totals} />
			</div>
			<Findings after={totals.data !== undefined} />
			<div className="overview-tops">
				{TOPS.map((kind) => (
					<Top key={kind} by={kind} />
				))}
			</div>
			<Gaps />
		</div>
	);
}
