// Where the time went, and why; then what happened over time.

import { useDiagnosis } from "../../state/diagnosis";
import { useSums } from "../../state/session";
import { Findings } from "./findings";
import { Gaps } from "./gaps";
import { LatencyPanel } from "./latency";
import { Rates } from "./rates";
import { Story } from "./story";
import { Summary } from "./summary";
import { Top } from "./top";
import { useErrors } from "./totals";
import { Where } from "./where";
import "./style.css";

const TOPS = ["path", "syscall", "thread"] as const;

export default function Overview() {
	const totals = useSums();
	const errors = useErrors();
	// What takes less time comes first, so that nothing waits for a diagnosis.
	const diagnosis = useDiagnosis(totals.data !== undefined);
	return (
		<div className="overview">
			<Story diagnosis={diagnosis} />
			<Where />
			<Findings diagnosis={diagnosis} />
			<Summary totals={totals} errors={errors} />
			<div className="overview-plots">
				<Rates totals={totals} errors={errors} />
				<LatencyPanel totals={totals} />
			</div>
			<div className="overview-tops">
				{TOPS.map((kind) => (
					<Top key={kind} by={kind} />
				))}
			</div>
			<Gaps />
		</div>
	);
}
