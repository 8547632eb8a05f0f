import { colorOf } from "../../lib/color";
import { duration, percent } from "../../lib/format";
import { meaningOf } from "../../lib/layers";
import { useTheme } from "../../state/theme";
import { type Inside, partsOf } from "./spans";

/** Time outside of recorded calls has the color of what has none of its own. */
const REST = "var(--line-strong)";
/** Parts that tips name. */
const NAMED = 4;

interface Props {
	inside: Inside;
	/** Duration of the span, or of all spans of a name. */
	total: number;
	/** Length of the bar as a share of the longest one. */
	length?: number;
}

/** Where the time of spans went: their calls by layer, and the rest. */
export function LayerBar({ inside, total, length = 1 }: Props) {
	const theme = useTheme();
	const parts = partsOf(inside, total);
	const name = (layer: string | null) => layer ?? "outside of calls";
	const said = parts
		.slice()
		.sort((a, b) => b.time - a.time)
		.slice(0, NAMED)
		.map((part) => `${name(part.layer)} ${percent(part.share)}`)
		.join(", ");
	const tip = parts.map(({ layer, time, share }) => {
		const meaning = layer === null ? "" : (meaningOf(layer) ?? "");
		return `${name(layer)}${meaning ? ` (${meaning})` : ""}: ${duration(time)}, ${percent(share)}`;
	});
	return (
		<span className="span-bar" title={tip.join("\n")} style={{ width: `${Math.max(length, 0.01) * 100}%` }}>
			<span className="only-read">{said}</span>
			{parts.map(({ layer, share }) => (
				<span
					key={layer ?? ""}
					aria-hidden="true"
					style={{
						width: `${share * 100}%`,
						background: layer === null ? REST : colorOf("layer", layer, theme),
					}}
				/>
			))}
		</span>
	);
}

/** The colors of the bars. */
export function layerEntries(all: readonly Inside[], theme: "dark" | "light"): { label: string; color: string }[] {
	const sums = new Map<string, number>();
	for (const { layers } of all) for (const { layer, time } of layers) sums.set(layer, (sums.get(layer) ?? 0) + time);
	const found = [...sums]
		.sort((a, b) => b[1] - a[1])
		.map(([label]) => ({ label, color: colorOf("layer", label, theme) }));
	return [...found, { label: "outside of calls", color: REST }];
}
