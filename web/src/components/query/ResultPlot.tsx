import { useMemo } from "react";
import type { Columns } from "../../api/arrow";
import { colorOf, type Kind } from "../../lib/color";
import { bothDurations, bytes, count, counted, duration, exact, percent, visible } from "../../lib/format";
import { niceStep, type Span, ticks } from "../../lib/scale";
import type { PlotChoice } from "../../state/queries";
import { useSession, useShown } from "../../state/session";
import { useTheme } from "../../state/theme";
import { Legend } from "../legend";
import type { Axis } from "../plotframe";
import { Empty } from "../states";
import { type PlotSeries, TimeChart } from "../timechart";
import { evened, type PlotData, plotOf, resolved, unitOf } from "./plot";

interface Props {
	data: Columns;
	choice: PlotChoice;
	title: string;
	height: number;
	/** The result is of the page's window, which is drawn whole then. */
	follows: boolean;
}

/** Columns whose values have colors of their own. */
const KINDS: Readonly<Record<string, Kind>> = {
	syscall: "syscall",
	class: "class",
	layer: "layer",
	comm: "comm",
	device: "device",
};

export function ResultPlot({ data, choice, title, height, follows }: Props) {
	const theme = useTheme();
	const { about } = useSession();
	const shown = useShown();
	const made = useMemo(() => {
		const full = resolved(data, choice);
		if (!full) return null;
		const plot = plotOf(data, full, about.started_at_ns);
		return { full, plot: full.form === "dots" ? plot : evened(plot) };
	}, [data, choice, about.started_at_ns]);
	if (!made) {
		return (
			<Empty title="There is nothing to draw">
				A plot needs a column of numbers besides the one that goes across. The table shows what there is.
			</Empty>
		);
	}
	const { full, plot } = made;
	if (plot.at.length === 0) return <Empty title="No rows">The statement found nothing to draw.</Empty>;
	const unit = unitOf(full.y[0] ?? "");
	const format = { duration, bytes, share: percent, number: count }[unit];
	const precise = { duration: bothDurations, bytes: (v: number) => counted(v, "byte"), share: percent, number: exact };
	const kind = full.series ? KINDS[full.series] : undefined;
	const series: PlotSeries[] = plot.series.map((s) => ({
		label: visible(s.label),
		color: colorOf(kind ?? "series", kind && s.key !== null ? s.key : s.key === null ? null : `sql ${s.label}`, theme),
		values: s.values,
		style: full.form === "stack" ? "stack" : full.form === "dots" ? "dots" : "line",
	}));
	const loose = full.form === "dots" || plot.step === null;
	return (
		<div className="result-plot">
			<Legend entries={series} />
			<TimeChart
				label={`${title}: ${full.y.join(", ")} by ${full.x}`}
				span={plot.kind === "time" && follows ? shown.span : plot.span}
				t={plot.at}
				bucket={plot.step ?? 1}
				series={series}
				height={height}
				format={format}
				exact={precise[unit]}
				binary={unit === "bytes"}
				log={full.log && full.form !== "stack"}
				loose={loose}
				axis={plot.kind === "time" ? undefined : axisOf(plot, full.x)}
			/>
			{plot.joined > 0 ? (
				<p className="faint result-note">
					{exact(plot.joined)} values were added to others of the same {full.x}
					{full.series ? ` and ${full.series}` : ""}: group by them to choose how.
				</p>
			) : null}
		</div>
	);
}

function axisOf(plot: PlotData, x: string): Axis {
	if (plot.kind === "category") {
		return {
			ticks: (span: Span, room: number) => {
				const step = Math.max(1, Math.ceil(plot.names.length / Math.max(1, room)));
				return ticks(span, step)
					.filter((v) => v < plot.names.length)
					.map((v) => v + 0.5);
			},
			format: (value) => shortened(plot.names[Math.floor(value)] ?? ""),
			head: (index) => visible(plot.names[index] ?? ""),
		};
	}
	const unit = unitOf(x);
	const format = unit === "duration" ? duration : unit === "bytes" ? bytes : count;
	return {
		ticks: (span, room) => ticks(span, niceStep((span.to - span.from) / Math.max(1, room))),
		format,
		head: (index) => `${x} ${exact(plot.at[index] ?? 0)}`,
	};
}

function shortened(text: string): string {
	const shown = visible(text);
	return shown.length > 18 ? `…${shown.slice(-17)}` : shown;
}
