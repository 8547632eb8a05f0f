// How a result is drawn: as a table, or as a plot with what goes where.

import type { Columns } from "../../api/arrow";
import { visible } from "../../lib/format";
import type { PlotChoice } from "../../state/queries";
import { Segmented } from "../segmented";
import { isNumeric, resolved } from "./plot";

const FORMS: readonly (readonly [PlotChoice["form"], string])[] = [
	["table", "Table"],
	["line", "Lines"],
	["stack", "Stacked"],
	["dots", "Points"],
];

interface Props {
	data: Columns | undefined;
	choice: PlotChoice;
	onChange: (choice: PlotChoice) => void;
}

export function Choice({ data, choice, onChange }: Props) {
	const full = data ? resolved(data, choice) : null;
	const names = data?.names ?? [];
	const numeric = data ? names.filter((name) => isNumeric(data, name)) : [];
	const select = (
		label: string,
		value: string,
		options: readonly (readonly [string, string])[],
		set: (v: string) => void,
	) => (
		<label className="choice">
			{label}:
			<select className="field" value={value} onChange={(event) => set(event.target.value)}>
				{options.map(([id, title]) => (
					<option key={id} value={id}>
						{visible(title)}
					</option>
				))}
			</select>
		</label>
	);
	const same = (list: readonly string[]) => list.map((name) => [name, name] as const);
	return (
		<>
			<Segmented
				label="Result as"
				value={choice.form}
				options={FORMS}
				onChange={(form) => onChange({ ...choice, form })}
			/>
			{choice.form !== "table" && full ? (
				<>
					{select("X", full.x, same(names), (x) => onChange({ ...choice, x }))}
					{select(
						"Y",
						full.y.length > 1 ? "*" : (full.y[0] ?? ""),
						[
							...same(numeric.filter((name) => name !== full.x)),
							...(numeric.length > 2 ? [["*", "all numbers"] as const] : []),
						],
						(y) => onChange({ ...choice, y: y === "*" ? numeric.filter((name) => name !== full.x) : [y] }),
					)}
					{select(
						"Color",
						full.series || "none",
						[["none", "none"], ...same(names.filter((name) => name !== full.x && !full.y.includes(name)))],
						(series) => onChange({ ...choice, series }),
					)}
					{choice.form === "stack" ? null : (
						<label className="choice">
							<input
								type="checkbox"
								checked={choice.log}
								onChange={(event) => onChange({ ...choice, log: event.target.checked })}
							/>
							logarithmic
						</label>
					)}
				</>
			) : null}
		</>
	);
}
