import { TipRows } from "../../components/tip";
import { bytes, duration, exact, exactDuration, exactTime, percent, visible } from "../../lib/format";
import type { Hit } from "./hit";

/** What lies below the pointer, with exact values. */
export function HitTip({ hit }: { hit: Hit }) {
	const { thread } = hit;
	const who = `${visible(thread.comm ?? "thread")} ${thread.tid}`;
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
						{ label: "took", value: `${duration(hit.dur)} (${exactDuration(hit.dur)})` },
						{ label: "of which its own", value: exactDuration(hit.self) },
						{ label: "began", value: exactTime(hit.t) },
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
						{ label: "visits that began", value: exact(hit.visits) },
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
							label: "in a call that began before",
							value: `${duration(hit.time)} (${percent(hit.time / hit.bucket)})`,
						},
					]}
				/>
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
						{ label: "calls that began", value: exact(hit.calls) },
						{ label: "time in calls", value: `${duration(hit.time)} (${percent(hit.time / hit.bucket)})` },
						{ label: "longest", value: exactDuration(hit.max) },
						{ label: "errors", value: exact(hit.errors) },
						{ label: "bytes", value: `${bytes(hit.bytes)}` },
					]}
				/>
			</>
		);
	}
	return (
		<>
			<div className="head">
				<b>{hit.syscall}</b> {hit.errno ? <span className="danger">{hit.errno}</span> : null} · {who}
			</div>
			{hit.label ? <div className="path">{visible(hit.label)}</div> : null}
			<TipRows
				rows={[
					{ label: "took", value: `${duration(hit.dur)} (${exactDuration(hit.dur)})` },
					{ label: "began", value: exactTime(hit.t) },
					...(Number.isFinite(hit.bytes)
						? [{ label: "bytes", value: `${bytes(hit.bytes)} (${exact(hit.bytes)})` }]
						: []),
				]}
			/>
		</>
	);
}
