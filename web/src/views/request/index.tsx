// One request: where its time went, what it was asked, who else was involved.

import { Link } from "../../components/link";
import { Panel, Shown } from "../../components/panel";
import { Blocks, Counters, Facts, Head, Neighbors, PageCache, usedCache, Waits } from "../../components/request/parts";
import { spanOf } from "../../components/request/rows";
import { stepFrom, useRequest, windowAround } from "../../components/request/useRequest";
import { Waterfall } from "../../components/request/Waterfall";
import { Empty } from "../../components/states";
import { saveSvg } from "../../components/svg";
import "../../components/request/style.css";
import { duration } from "../../lib/format";
import { useShortcut } from "../../state/keys";
import { usePage } from "../../state/store";
import "./style.css";

export default function Request() {
	const { rid, filter } = usePage();
	const request = useRequest(rid);
	const answer = request.data;
	const step = (by: 1 | -1) => stepFrom(answer, by);
	useShortcut([",", "ArrowUp"], "The call of the thread before", "Request", () => step(-1));
	useShortcut([".", "ArrowDown"], "The call of the thread after", "Request", () => step(1));
	if (rid === null) {
		return (
			<Empty title="No request is selected">
				Click a call in the <Link to={{ view: "timeline" }}>timeline</Link> or a row in the{" "}
				<Link to={{ view: "table" }}>table</Link>.
			</Empty>
		);
	}
	return (
		<Shown of={request} height={400}>
			{(data) => {
				const { from } = spanOf(data.row);
				return (
					<div className="request">
						<section className="panel request-title" aria-label="Request">
							<Head answer={data} />
							<div className="request-links">
								<button type="button" className="button" title="The call before (,)" onClick={() => step(-1)}>
									‹ Before
								</button>
								<button type="button" className="button" title="The call after (.)" onClick={() => step(1)}>
									After ›
								</button>
								<Link className="button" to={{ view: "timeline", window: windowAround(data) }}>
									In the timeline
								</Link>
							</div>
						</section>
						<Panel
							title="Through the layers"
							note={
								data.slices.length > 0
									? "own times add up to the request"
									: "nothing was seen below the call: not recorded with --layers, or it went straight through"
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
									<Panel key={String(row["rid"])} title="Counters" note="while it was on a processor">
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
							<div className="request-column">
								{data.waits.length > 0 ? (
									<Panel
										title="Off the CPU"
										note={`${data.waits.length === 1 ? "once" : `${data.waits.length} times`}, ${duration(sum(data.waits))}`}
									>
										<Waits rows={data.waits} from={from} />
									</Panel>
								) : null}
								{data.block.length > 0 ? (
									<Panel title="Requests to devices" note={`${data.block.length}`}>
										<Blocks blocks={data.block} from={from} />
									</Panel>
								) : null}
								<Panel
									title="Calls of the thread around it"
									note={Object.keys(filter).length > 0 ? "all of them, also what the filter leaves out" : undefined}
								>
									<Neighbors answer={data} />
								</Panel>
							</div>
						</div>
					</div>
				);
			}}
		</Shown>
	);
}

function sum(rows: readonly Readonly<Record<string, unknown>>[]): number {
	return rows.reduce((a, row) => a + (Number(row["dur_ns"]) || 0), 0);
}
