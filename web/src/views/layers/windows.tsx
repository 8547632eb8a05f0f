import { useMemo } from "react";
import { Legend } from "../../components/legend";
import { Panel, Shown } from "../../components/panel";
import { Segmented } from "../../components/segmented";
import { TimeChart } from "../../components/timechart";
import { useTall } from "../../components/useTall";
import { gridOf, perSecond } from "../../lib/buckets";
import { colorOf } from "../../lib/color";
import { duration, exactDuration, percent } from "../../lib/format";
import { meaningOf } from "../../lib/layers";
import { useColumns, useShown } from "../../state/session";
import { toggleFilter, useParam } from "../../state/store";
import { useTheme } from "../../state/theme";
import { shares, windowsOf } from "./stack";

const BUCKETS = 500;

const UNITS = [
	["time", "time"],
	["share", "share"],
] as const;

/** Time by layer over windows, and all in all. */
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
	return (
		<div className="layers-windows">
			<Panel
				title="Time by layer"
				note={
					unit === "time"
						? "of all threads, per second; all of a visit counts where it begins"
						: "share of the time in calls"
				}
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
									values: unit === "time" ? perSecond(s.values, made.grid.bucket) : s.values,
									style: "stack",
								}))}
								height={height}
								{...(unit === "share" ? { range: [0, 1] as const } : {})}
								format={unit === "time" ? (v) => `${duration(v)}/s` : percent}
							/>
						)
					}
				</Shown>
			</Panel>
			<Panel title="All in all" note="in this window">
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
											title={`${meaningOf(s.label) ?? s.label}\nClick: only calls that spent time there. Alt+click: all but those.`}
											onClick={(event) => toggleFilter("layer", s.label, event.altKey)}
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
			</Panel>
		</div>
	);
}
