import { useMemo } from "react";
import { Legend } from "../../components/legend";
import { bucketOf, onward, showProgress, stackAt } from "../../components/onward";
import { Panel, Shown } from "../../components/panel";
import type { Pointed } from "../../components/plotframe";
import { Segmented } from "../../components/segmented";
import { TimeChart } from "../../components/timechart";
import { useTall } from "../../components/useTall";
import { useThingMenu } from "../../components/useThingMenu";
import { gridOf } from "../../lib/buckets";
import { colorOf } from "../../lib/color";
import { duration, exactDuration, inProgress, percent } from "../../lib/format";
import { meaningOf } from "../../lib/layers";
import { useColumns, useShown } from "../../state/session";
import { toggleFilter, useParam } from "../../state/store";
import { useTheme } from "../../state/theme";
import { shares, windowsOf } from "./stack";

const BUCKETS = 500;

const UNITS = [
	["time", "calls"],
	["share", "share"],
] as const;

/** Time by layer: over time, and in sum. */
export function Windows() {
	const { span } = useShown();
	const height = useTall(220, 0.22);
	const theme = useTheme();
	const [param, setUnit] = useParam("unit", "time");
	const unit = param === "share" ? "share" : "time";
	const answer = useColumns({ path: "layers", params: { mode: "windows" }, pixels: BUCKETS });
	const made = useMemo(() => {
		if (!answer.data) return null;
		const grid = gridOf(answer.data);
		const sums = windowsOf(answer.data, grid);
		return { grid, sums, shares: shares(sums), all: sums.reduce((all, s) => all + s.total, 0) };
	}, [answer.data]);
	const color = (layer: string) => colorOf("layer", layer, theme);
	const { open, menu } = useThingMenu();
	const pick = (at: Pointed) => {
		const time = made && bucketOf(made.grid, at.index);
		if (!time) return;
		const values = unit === "share" ? made.shares : made.sums;
		const scale = unit === "share" ? 1 : made.grid.bucket;
		const layer =
			values[
				stackAt(
					values.map((s) => s.values),
					{ ...at, value: at.value * scale },
				)
			];
		showProgress(time, layer ? { layer: [layer.label] } : {});
	};
	return (
		<div className="layers-windows">
			<Panel
				title="Layers over time"
				note={unit === "time" ? "calls in progress in each layer, on average" : "share of the time in calls"}
				head={
					made ? (
						<Legend
							entries={made.sums.map((s) => ({
								label: s.label,
								color: color(s.label),
								title: `${meaningOf(s.label) ?? s.label}. Click: only calls that spent time there. Alt+click: all but those.`,
								onPick: ({ alt }) => toggleFilter("layer", s.label, alt),
							}))}
						/>
					) : undefined
				}
				end={<Segmented label="Unit" value={unit} options={UNITS} onChange={setUnit} />}
				picture="layers-windows"
			>
				<Shown of={answer} height={height} empty={(data) => data.rows === 0}>
					{() =>
						made && (
							<TimeChart
								label="Time by layer over time"
								span={span}
								t={made.grid.t}
								bucket={made.grid.bucket}
								series={(unit === "time" ? made.sums : made.shares).map((s) => ({
									label: s.label,
									color: color(s.label),
									values: unit === "time" ? s.values.map((v) => v / made.grid.bucket) : s.values,
									style: "stack",
								}))}
								height={height}
								{...onward("Timeline of this time", pick)}
								{...(unit === "share" ? { range: [0, 1] as const } : {})}
								format={unit === "time" ? inProgress : percent}
							/>
						)
					}
				</Shown>
			</Panel>
			<Panel title="Time by layer" note="sums over this window">
				<Shown of={answer} height={height} empty={(data) => data.rows === 0}>
					{() =>
						made && (
							<table className="figures layers-sums">
								<thead>
									<tr>
										<th>Layer</th>
										<th className="number">Time</th>
										<th className="number">Share</th>
									</tr>
								</thead>
								<tbody>
									{made.sums.map((s) => (
										<tr
											key={s.label}
											className="link"
											title={meaningOf(s.label) ?? s.label}
											onClick={(event) => open({ member: "layer", value: s.label, label: s.label }, event)}
										>
											<td>
												<span
													className="bar"
													style={{
														width: `${made.all > 0 ? (s.total / made.all) * 100 : 0}%`,
														background: color(s.label),
													}}
												/>
												<span className="swatch" style={{ background: color(s.label) }} />{" "}
												<button type="button" className="plain-name">
													{s.label}
												</button>{" "}
												<span className="faint">{meaningOf(s.label)}</span>
											</td>
											<td className="number" title={exactDuration(s.total)}>
												{duration(s.total)}
											</td>
											<td className="number">{made.all > 0 ? percent(s.total / made.all) : "–"}</td>
										</tr>
									))}
								</tbody>
							</table>
						)
					}
				</Shown>
				{menu}
			</Panel>
		</div>
	);
}
