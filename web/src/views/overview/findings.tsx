import type { Finding } from "../../api/session";
import { Panel, Shown } from "../../components/panel";
import { sentence } from "../../components/states";
import { Text } from "../../components/text";
import { duration, visible } from "../../lib/format";
import { useJson } from "../../state/session";

/** What the rules have found in the whole session. */
export function Findings() {
	const findings = useJson<{ findings: Finding[] }>({ path: "findings", windowed: false, filtered: false });
	const list = findings.data?.findings ?? [];
	return (
		<Panel
			title="Findings"
			note={
				findings.data ? `${list.length}, over the whole session; the most time lost first` : "over the whole session"
			}
		>
			<Shown
				of={findings}
				height={60}
				empty={(data) => data.findings.length === 0}
				emptyTitle="No rule has anything to say"
				emptyText="None of the known patterns of slow or faulty I/O is in this session."
			>
				{(data) => (
					<div className="findings-list">
						{data.findings.map((finding, i) => (
							<div className="finding" key={i}>
								<span className={`severity ${finding.severity}`}>{sentence(finding.severity)}</span>
								<div>
									<b>{visible(finding.title)}</b>{" "}
									{finding.subject ? <Text of={finding.subject} className="mono quiet" /> : null}
								</div>
								<span className="number quiet">{finding.lost_ns ? duration(finding.lost_ns) : ""}</span>
								{finding.advice ? <p className="advice">{visible(finding.advice)}</p> : null}
							</div>
						))}
					</div>
				)}
			</Shown>
		</Panel>
	);
}
