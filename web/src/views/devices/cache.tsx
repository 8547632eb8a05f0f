import { useMemo } from "react";
import { Legend } from "../../components/legend";
import { Panel, Shown } from "../../components/panel";
import { type PlotSeries, TimeChart } from "../../components/timechart";
import { useTall } from "../../components/useTall";
import { gridOf, perSecond, seriesOf } from "../../lib/buckets";
import { colorOf } from "../../lib/color";
import { count, exact, percent } from "../../lib/format";
import { useColumns, useSession, useShown } from "../../state/session";
import { useTheme } from "../../state/theme";
import { toTimeline } from "./plots";
import { ratio, sum } from "./series";

const BUCKETS = 400;

/** What of the pages that were read was in memory already. */
export function Cache() {
	const { span } = useShown();
	const height = useTall(116, 0.12);
	const { about } = useSession();
	const theme = useTheme();
	const answer = useColumns({ path: "cache", pixels: BUCKETS });
	const made = useMemo(() => {
		const data = answer.data;
		if (!data) return null;
		const grid = gridOf(data);
		const of = (name: string) => seriesOf(data, grid, name);
		const pages = of("pages");
		const hits = of("hits");
		return { grid, pages, hits, misses: of("misses"), readahead: of("readahead"), ratio: ratio(hits, pages) };
	}, [answer.data]);
	const colors = {
		hits: colorOf("series", "p50", theme),
		misses: colorOf("series", "written", theme),
		readahead: colorOf("series", "max", theme),
	};
	const rate = (values: Float64Array) => (made ? perSecond(values, made.grid.bucket) : values);
	const series: PlotSeries[] = made
		? [
				{ label: "hits", color: colors.hits, values: rate(made.hits), style: "stack" },
				{ label: "misses", color: colors.misses, values: rate(made.misses), style: "stack" },
				{ label: "read ahead", color: colors.readahead, values: rate(made.readahead), style: "line" },
			]
		: [];
	const recorded = about.layers.find((layer) => layer.name === "pagecache")?.recorded !== false;
	return (
		<Panel
			title="Page cache"
			note={
				made && sum(made.pages) > 0
					? `hit ratio ${percent(sum(made.hits) / sum(made.pages))} of ${count(sum(made.pages))} pages that were looked up`
					: "pages that reads looked up"
			}
			head={<Legend entries={series} />}
			picture="page-cache"
		>
			<Shown
				of={answer}
				height={height + 94}
				empty={(data) => data.rows === 0}
				emptyTitle={recorded ? "Nothing used the page cache in this window" : "The page cache was not recorded"}
				emptyText={
					recorded ? undefined : (
						<>
							Record with <code>--layers pagecache</code>, or <code>--layers all</code>.
						</>
					)
				}
			>
				{() =>
					made && (
						<>
							<div className="devices-sub">hit ratio</div>
							<TimeChart
								label="Hit ratio of the page cache over time"
								span={span}
								t={made.grid.t}
								bucket={made.grid.bucket}
								{...toTimeline(made.grid)}
								series={[{ label: "hit ratio", color: colors.hits, values: made.ratio, style: "line" }]}
								height={80}
								times={false}
								range={[0, 1.04]}
								format={percent}
							/>
							<div className="devices-sub">pages/s</div>
							<TimeChart
								label="Pages looked up in the page cache per second over time"
								span={span}
								t={made.grid.t}
								bucket={made.grid.bucket}
								{...toTimeline(made.grid)}
								series={series}
								height={height}
								format={count}
								exact={(v) => `${exact(Math.round(v))}/s`}
							/>
						</>
					)
				}
			</Shown>
		</Panel>
	);
}
