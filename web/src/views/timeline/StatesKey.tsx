import { Legend } from "../../components/legend";
import { counted, exact, percent } from "../../lib/format";
import type { Span } from "../../lib/scale";
import { useTheme } from "../../state/theme";
import type { Lane } from "./lanes";
import { ARROWS } from "./paintstates";
import { colorOfKey, labelOf, type States, sharesOf, wakesOf } from "./states";

const SHOWN = 7;

/** How to read the strips of states, and what they leave out. */
export function StatesKey({ states, rows, span }: { states: States | null; rows: readonly Lane[]; span: Span }) {
	const theme = useTheme();
	if (!states) return null;
	if (states.mode === "many")
		return <div className="states-key">Too many waits to sum up: zoom in to see the states of threads.</div>;
	if (states.mode === "none") return null;
	const wakes = wakesOf(states, rows, span).length;
	let arrows = "";
	if (states.mode === "sums") arrows = "Zoom in to see wake-ups as arrows.";
	else if (wakes > ARROWS) arrows = `${exact(wakes)} wake-ups: zoom in for all arrows, or point at a wait for its own.`;
	else if (wakes > 0) arrows = "Arrows: wake-ups, from the waker to the woken thread.";
	const lost =
		states.lost > 0 ? `${counted(states.lost, "row")} of layer sched were lost: running may contain waits.` : "";
	return (
		<div className="states-key">
			<Legend
				entries={sharesOf(states)
					.slice(0, SHOWN)
					.map(([key, share]) => ({
						label: `${labelOf(key)} ${percent(share)}`,
						color: colorOfKey(key, theme),
					}))}
			/>
			{arrows} {lost}
		</div>
	);
}
