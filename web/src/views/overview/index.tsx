// What happened, how much, how fast, and who did it.

import { useMemo } from "react";
import { useParam } from "../../state/store";
import { Findings } from "./findings";
import { Latency, Throughput } from "./plots";
import { Summary } from "./summary";
import { Top } from "./top";
import "./style.css";

export default function Overview() {
	const [by, setBy] = useParam("by", "syscall");
	const tops = useMemo(() => ["file", "syscall", "thread"] as const, []);
	return (
		<div className="overview">
			<Summary />
			<div className="overview-plots">
				<Throughput by={by} setBy={setBy} />
				<Latency />
			</div>
			<Findings />
			<div className="overview-tops">
				{tops.map((kind) => (
					<Top key={kind} by={kind} />
				))}
			</div>
		</div>
	);
}
