import { useShortcut } from "../../state/keys";
import { store, useRestedPage } from "../../state/store";
import { Link } from "../link";
import { Shown } from "../panel";
import { Blocks, Facts, Head, Neighbors, PageCache, Section, usedCache, Waits } from "./parts";
import { spanOf } from "./rows";
import { stepFrom, useRequest, windowAround } from "./useRequest";
import { Waterfall } from "./Waterfall";
import { Why } from "./Why";
import "./style.css";

/** A request beside a plot: what it was and where its time went. */
export function RequestCard({ rid }: { rid: number }) {
	const request = useRequest(rid);
	const answer = request.data;
	const { view } = useRestedPage();
	const step = (by: 1 | -1) => stepFrom(answer, by);
	useShortcut([","], "Previous call of the thread", "Selected call", () => step(-1));
	useShortcut(["."], "Next call of the thread", "Selected call", () => step(1));
	useShortcut(["z"], "Zoom to it", "Selected call", () => {
		if (answer) store.go({ window: windowAround(answer) });
	});
	return (
		<div className="request-card">
			<div className="request-card-bar">
				<button type="button" className="button plain" title="Previous call (,)" onClick={() => step(-1)}>
					‹
				</button>
				<button type="button" className="button plain" title="Next call (.)" onClick={() => step(1)}>
					›
				</button>
				{answer ? (
					<Link
						className="button plain"
						to={{ view: "timeline", window: windowAround(answer), rid }}
						title={view === "timeline" ? "Zoom to it (z)" : "Show it among the calls around it"}
					>
						{view === "timeline" ? "Zoom to it" : "Show in Timeline"}
					</Link>
				) : null}
				<Link className="button plain" to={{ view: "request", rid }}>
					Details
				</Link>
				<button
					type="button"
					className="button plain request-close"
					aria-label="Close"
					title="Close (Esc)"
					onClick={() => store.go({ rid: null })}
				>
					×
				</button>
			</div>
			<Shown of={request} height={300}>
				{(data) => {
					const { from } = spanOf(data.row);
					return (
						<div>
							<Head answer={data} />
							<Why rid={rid} />
							<Section title="Through the layers">
								<Waterfall answer={data} names={150} narrow />
							</Section>
							<Section title="Call">
								<Facts row={data.row} />
							</Section>
							{data.waits.length > 0 ? (
								<Section title="Waits">
									<div className="scroll-x">
										<Waits rows={data.waits} from={from} />
									</div>
								</Section>
							) : null}
							{data.block.length > 0 ? (
								<Section title="Device requests">
									<div className="scroll-x">
										<Blocks blocks={data.block} from={from} />
									</div>
								</Section>
							) : null}
							{usedCache(data.row) ? (
								<Section title="Page cache">
									<PageCache row={data.row} />
								</Section>
							) : null}
							<Section title="Calls before and after">
								<div className="scroll-x">
									<Neighbors answer={data} />
								</div>
							</Section>
						</div>
					);
				}}
			</Shown>
		</div>
	);
}
