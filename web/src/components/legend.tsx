import { Swatch, Text } from "./text";

export interface LegendEntry {
	label: string;
	color: string;
	/** Makes the entry a button, as for filtering by it. */
	onPick?: (event: { alt: boolean }) => void;
	title?: string;
}

export function Legend({ entries }: { entries: readonly LegendEntry[] }) {
	return (
		<div className="legend">
			{entries.map((entry) =>
				entry.onPick ? (
					<button
						type="button"
						key={entry.label}
						title={entry.title ?? "Click: show only this. Alt+click: show all but this."}
						onClick={(event) => entry.onPick?.({ alt: event.altKey })}
					>
						<Swatch color={entry.color} />
						<Text of={entry.label} className="cut" />
					</button>
				) : (
					<span className="entry" key={entry.label}>
						<Swatch color={entry.color} />
						<Text of={entry.label} className="cut" />
					</span>
				),
			)}
		</div>
	);
}
