// One request: where its time went, what it was asked, who else was involved.

import { Link } from "../../components/link";
import { Panel, Shown } from "../../components/panel";
import { CriticalPath } from "../../components/request/CriticalPath";
import { LibraryLine, OfLibrary } from "../../components/request/LibraryCall";
import { Meanwhile } from "../../components/request/Meanwhile";
import { Blocks, Counters, Facts, Head, Neighbors, PageCache, usedCache, Waits } from "../../components/request/parts";
import { number, spanOf } from "../../components/request/rows";
import { stepFrom, useRequest, windowAround } from "../../components/request/useRequest";
import { Waterfall } from "../../components/request/Waterfall";
import { Why } from "../../components/request/Why";
import { saveSvg } from "../../components/svg";
import "../../components/request/style.css";
import { duration } from "../../lib/format";
import { useShortcut } from "../../state/keys";
import { usePage } from "../../state/store";
import { Slowest } from "./Slowest";
import "./style.css";

export default function Request() {
	const { rid, filter } = usePage();
	const request = useRequest(rid);
	const answer = request.data;
	const step = (by: 1 | -1) => stepFrom(answer, by);
	useShortcut([",", "ArrowUp"], "Previous call of the thread", "Request", () => step(-1));
	useShortcut([".", "ArrowDown"], "Next call of the thread", "Request", () => step(1));
	if (rid === null) {
		return <Slowest />;
	}
	return (
		<Shown of={request} height={400}>
			{(data) => {
				const { from } = spanOf(data.row);
				const libraryCall = number(data.row, "user_call");
				// Only the first panel is next to the facts. They are shorter than several panels and would leave a gap.
				const [next, ...below] = [
					libraryCall === null ? null : <OfLibrary key="library" id={libraryCall} rid={rid} />,
					data.waits.length === 0 ? null : (
						<Panel
							key="waits"
							title="Waits"
							note={`${data.waits.length === 1 ? "once" : `${data.waits.length} times`}, ${duration(sum(data.waits))}`}
						>
							<Waits rows={data.waits} from={from} />
						</Panel>
					),
					data.block.length === 0 ? null : (
						<Panel key="block" title="Device requests" note={`${data.block.length}`}>
							<Blocks blocks={data.block} from={from} />
						</Panel>
					),
					<Panel
						key="neighbors"
						title="Calls before and after"
						note={Object.keys(filter).length > 0 ? "of this thread, without the filter" : "of this thread"}
					>
						<Neighbors answer={data} />
					</Panel>,
				].filter((part) => part !== null);
				return (
					<div className="request">
						<section className="panel request-title" aria-label="Request">
							<div className="request-what">
								<Head answer={data} />
								{libraryCall === null ? null : <LibraryLine id={libraryCall} />}
								<Why rid={rid} />
							</div>
							<div className="request-links">
								<button
									type="button"
									className="button"
									title="Previous call of the thread (,)"
									onClick={() => step(-1)}
								>
									‹ Previous call
								</button>
								<button type="button" className="button" title="Next call of the thread (.)" onClick={() => step(1)}>
									Next call ›
								</button>
								<Link className="button" to={{ view: "timeline", window: windowAround(data) }}>
									Show in Timeline
								</Link>
							</div>
						</section>
						<Meanwhile rid={rid} names={260} />
						<CriticalPath rid={rid} names={260} />
						<Panel
							title="Through the layers"
							note={
								data.slices.length > 0
									? "own times add up to the duration of the call"
									: "no events of the layers below were recorded (--layers), or the call used none"
							}
							end={
								<button
									type="button"
									className="button plain"
									title="Save this as an SVG picture"
									onClick={(event) => saveSvg(event.currentTarget.closest(".panel"), `request-${rid}`)}
								>
									SVG
								</button>
							}
						>
							<Waterfall answer={data} names={260} />
						</Panel>
						<div className="request-columns">
							<div className="request-column">
								<Panel title="Call">
									<div className="padded">
										<Facts row={data.row} />
									</div>
								</Panel>
								{data.counters.map((row) => (
									<Panel key={String(row["rid"])} title="Counters" note="while it ran on a CPU">
										<div className="padded">
											<Counters row={row} />
										</div>
									</Panel>
								))}
								{usedCache(data.row) ? (
									<Panel title="Page cache">
										<div className="padded">
											<PageCache row={data.row} />
										</div>
									</Panel>
								) : null}
							</div>
							<div className="request-column">{next}</div>
						</div>
						{below}
					</div>
				);
			}}
		</Shown>
	);
}

function sum(rows: readonly Readonly<Record<string, unknown>>[]): number {
	return rows.reduce((a, row) => a + (Number(row["dur_ns"]) || 0), 0);
}
