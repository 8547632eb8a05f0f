import { Swatch } from "../../components/text";
import { colorOf, durationShare, ERROR, ramp } from "../../lib/color";
import { useTheme } from "../../state/theme";

const STEPS: readonly (readonly [number, string])[] = [
	[1e4, "10 µs"],
	[1e6, "1 ms"],
	[1e8, "100 ms"],
];

const CALLS = ["read", "write", "fsync", "openat", "close", "newfstatat"];

/** How to read the lanes. */
export function Key({ layers }: { layers: boolean }) {
	const theme = useTheme();
	return (
		<div className={layers ? "timeline-key with-layers" : "timeline-key"}>
			<span className="faint">Many calls: height is time in calls, color the longest</span>
			{STEPS.map(([ns, text]) => (
				<span key={text}>
					<Swatch color={ramp(0.22 + 0.78 * durationShare(ns), theme)} /> {text}
				</span>
			))}
			<span>
				<Swatch color={ERROR[theme]} /> errors
			</span>
			{layers ? (
				<span className="faint timeline-key-calls">Rows of layers: single visits, or the height is own time</span>
			) : (
				<>
					<span className="faint timeline-key-calls">Single calls:</span>
					{CALLS.map((name) => (
						<span key={name} className="timeline-key-calls">
							<Swatch color={colorOf("syscall", name, theme)} /> {name}
						</span>
					))}
				</>
			)}
		</div>
	);
}
