import { Swatch } from "../../components/text";
import { colorOf } from "../../lib/color";
import { useTheme } from "../../state/theme";
import { type ColorBy, durationRgb, NEUTRAL, RETURNED_ERROR } from "./paint";

const STEPS: readonly (readonly [number, string])[] = [
	[1e4, "10 µs"],
	[1e6, "1 ms"],
	[1e8, "100 ms"],
];

const CALLS = ["read", "write", "fsync", "openat", "close", "newfstatat"];

/** How to read the lanes. */
export function Key({ layers, by }: { layers: boolean; by: ColorBy }) {
	const theme = useTheme();
	return (
		<div
			className={layers ? "timeline-key with-layers" : "timeline-key"}
			title="Where calls are too many to draw each, height is the share of time in calls, and the color shows the longest call."
		>
			{by === "duration" ? (
				STEPS.map(([ns, text]) => (
					<span key={text}>
						<Swatch color={`rgb(${durationRgb(ns, theme).join(" ")})`} /> {text}
					</span>
				))
			) : (
				<>
					<span>
						<Swatch color={`rgb(${NEUTRAL[theme].join(" ")})`} /> many calls
					</span>
					{CALLS.map((name) => (
						<span key={name} className="timeline-key-calls">
							<Swatch color={colorOf("syscall", name, theme)} /> {name}
						</span>
					))}
				</>
			)}
			<span>
				<Swatch color={`rgb(${RETURNED_ERROR[theme].join(" ")})`} /> returned an error
			</span>
		</div>
	);
}
