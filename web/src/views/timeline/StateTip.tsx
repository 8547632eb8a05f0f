import { TipRows } from "../../components/tip";
import { bothDurations, duration, exactTime, percent, visible } from "../../lib/format";
import { useTheme } from "../../state/theme";
import type { StateHit } from "./hit";
import { colorOfKey, keyOf, labelOf, whyUnknown } from "./states";

/** The state of a thread below the pointer. */
export function StateTip({ hit }: { hit: StateHit }) {
	const theme = useTheme();
	const { states, row, thread, parts } = hit;
	const who = `${visible(thread.comm ?? "thread")} ${thread.tid}`;
	if (row === null) {
		const all = parts.reduce((a, [, ns]) => a + ns, 0);
		return (
			<>
				<div className="head">
					{who} · {exactTime(hit.t)} <span className="faint">+ {duration(states.bucket)}</span>
				</div>
				<TipRows
					rows={parts.map(([key, ns]) => ({
						label: labelOf(key),
						value: `${duration(ns)} (${percent(ns / all)})`,
						color: colorOfKey(key, theme),
					}))}
				/>
				<div className="faint">click: zoom in</div>
			</>
		);
	}
	const key = keyOf(states, row);
	const whole = states.whole[row] ?? Number.NaN;
	const shown = states.dur[row] ?? 0;
	const number = (column: Float64Array) => {
		const value = column[row] ?? Number.NaN;
		return Number.isFinite(value) ? value : null;
	};
	const waker = states.waker[row] ?? "";
	const wakerTid = number(states.wakerTid);
	const cause = states.cause[row] ?? "";
	const causeId = number(states.causeId);
	const line = (label: string, value: string) => (value === "" ? [] : [{ label, value }]);
	return (
		<>
			<div className="head">
				<b>{labelOf(key)}</b> · {who}
			</div>
			{key === "unknown" ? <div>{whyUnknown(states.reason[row] ?? "")}</div> : null}
			<TipRows
				rows={[
					{
						label: "duration",
						value: Number.isFinite(whole) ? bothDurations(whole) : `at least ${duration(shown)} in this window`,
					},
					...line("call", states.call[row] ?? ""),
					...line("woken by", `${visible(waker)} ${wakerTid ?? ""}`.trim()),
					...line(
						"cause",
						cause === "block_request" && causeId !== null
							? `block request of ${exactTime(causeId)}`
							: `${cause.replaceAll("_", " ")} ${causeId ?? ""}`.trim(),
					),
				]}
			/>
			<div className="faint">click: {number(states.rid) === null ? "its rows in SQL" : "open this request"}</div>
		</>
	);
}
