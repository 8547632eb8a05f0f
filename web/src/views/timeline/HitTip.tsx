import { TipRows } from "../../components/tip";
import { bothDurations, bytes, duration, exact, exactTime, percent, visible } from "../../lib/format";
import { nameText } from "../../lib/spans";
import type { useFailures } from "../../state/failures";
import type { Hit } from "./hit";
import { StateTip } from "./StateTip";

/** What lies below the pointer, with exact values. */
export function HitTip({ hit, failed }: { hit: Hit; failed: ReturnType<typeof useFailures> }) {
	const { thread } = hit;
	const who = `${visible(thread.comm ?? "thread")} ${thread.tid}`;
	if (hit.kind === "state") return <StateTip hit={hit} />;
	if (hit.kind === "span") {
		const { span } = hit;
		return (
			<>
				<div className="head">
					<b>{visible(nameText(span))}</b> {span.failed ? <span className="danger">failed</span> : null} · {who}
				</div>
				<TipRows
					rows={[
						{ label: "span of", value: visible(span.service ?? "no service") },
						{ label: "duration", value: bothDurations(span.dur) },
						{ label: "start", value: exactTime(span.t) },
					]}
				/>
				<div className="faint">click: its calls</div>
			</>
		);
	}
	if (hit.kind === "lane" && hit.lane.group !== null) {
		const { members, group, open } = hit.lane;
		const time = members.reduce((a, t) => a + t.time_ns, 0);
		return (
			<>
				<div className="head">
					<b>{visible(group)}</b> <span className="faint">{exact(members.length)} threads</span>
				</div>
				<TipRows
					rows={[
						{ label: "calls", value: exact(members.reduce((a, t) => a + t.calls, 0)) },
						{ label: "time in calls", value: duration(time) },
					]}
				/>
				<div className="faint">click: {open ? "one lane for all" : "a lane each"}</div>
			</>
		);
	}
	if (hit.kind === "lane") {
		return (
			<>
				<div className="head">
					<b>{who}</b>
				</div>
				<TipRows
					rows={[
						{ label: "process", value: `${visible(thread.process ?? "")} ${thread.pid ?? ""}` },
						{ label: "calls", value: exact(thread.calls) },
						{ label: "time in calls", value: duration(thread.time_ns) },
					]}
				/>
			</>
		);
	}
	if (hit.kind === "visit") {
		return (
			<>
				<div className="head">
					<b>{hit.layer}</b> {visible(hit.name)} · {who}
				</div>
				<TipRows
					rows={[
						{ label: "duration", value: bothDurations(hit.dur) },
						{ label: "own time", value: bothDurations(hit.self) },
						{ label: "start", value: exactTime(hit.t) },
					]}
				/>
			</>
		);
	}
	if (hit.kind === "layer") {
		return (
			<>
				<div className="head">
					<b>{hit.layer}</b> · {who} · {exactTime(hit.t)} <span className="faint">+ {duration(hit.bucket)}</span>
				</div>
				<TipRows
					rows={[
						{ label: "visits that start here", value: exact(hit.visits) },
						{ label: "own time", value: `${duration(hit.time)} (${percent(hit.time / hit.bucket)})` },
					]}
				/>
			</>
		);
	}
	if (hit.kind === "sum" && hit.calls === 0) {
		return (
			<>
				<div className="head">
					{who} · {exactTime(hit.t)} <span className="faint">+ {duration(hit.bucket)}</span>
				</div>
				<TipRows
					rows={[
						{
							label: "in a call that started before",
							value: `${duration(hit.time)} (${percent(hit.time / hit.bucket)})`,
						},
					]}
				/>
				<div className="faint">click: open this call</div>
			</>
		);
	}
	if (hit.kind === "sum") {
		return (
			<>
				<div className="head">
					{who} · {exactTime(hit.t)} <span className="faint">+ {duration(hit.bucket)}</span>
				</div>
				<TipRows
					rows={[
						{ label: "calls that start here", value: exact(hit.calls) },
						{ label: "time in calls", value: `${duration(hit.time)} (${percent(hit.time / hit.bucket)})` },
						{ label: "longest", value: bothDurations(hit.max) },
						{ label: "errors", value: exact(hit.errors) },
						{ label: "bytes", value: `${bytes(hit.bytes)}` },
					]}
				/>
				<div className="faint">click: zoom in</div>
			</>
		);
	}
	return (
		<>
			<div className="head">
				<b>{hit.syscall}</b>{" "}
				{hit.errno ? <span className={failed(hit.syscall, hit.errno) ? "danger" : "quiet"}>{hit.errno}</span> : null} ·{" "}
				{who}
			</div>
			{hit.label ? <div className="path">{visible(hit.label)}</div> : null}
			<TipRows
				rows={[
					{ label: "duration", value: bothDurations(hit.dur) },
					{ label: "start", value: exactTime(hit.t) },
					...(Number.isFinite(hit.bytes)
						? [{ label: "bytes", value: `${bytes(hit.bytes)} (${exact(hit.bytes)})` }]
						: []),
				]}
			/>
		</>
	);
}
