// The two sides over time and by latency. Of several sessions a side the first is drawn over time.

import { useMemo } from "react";
import type { Columns } from "../../api/arrow";
import { columns, sessionPath } from "../../api/session";
import { Legend } from "../../components/legend";
import { Panel, Shown } from "../../components/panel";
import type { Axis } from "../../components/plotframe";
import { TimeChart } from "../../components/timechart";
import { useTall } from "../../components/useTall";
import { colorOf } from "../../lib/color";
import { count, duration, exact, percent, time } from "../../lib/format";
import { ticks, timeStep } from "../../lib/scale";
import { type Resource, useResource } from "../../state/resource";
import { client } from "../../state/server";
import { useTheme } from "../../state/theme";
import { distribution, overTime } from "./curves";

export function Curves({ before, after }: { before: string; after: string }) {
	const theme = useTheme();
	const height = useTall(190, 0.18);
	const tiles = [useTiles(before), useTiles(after)] as const;
	const data = [tiles[0].data, tiles[1].data] as const;
	const both = useMemo(() => {
		const [a, b] = data;
		if (!a || !b) return null;
		return { time: overTime(a, b), latency: distribution(a, b) };
	}, [data[0], data[1]]);
	const of = joined(tiles);
	const colors = [colorOf("series", "before", theme), colorOf("series", "after", theme)] as const;
	const labels = ["before", "after"] as const;
	const legend = labels.map((label, i) => ({ label, color: colors[i] ?? "" }));
	return (
		<div className="compare-plots">
			<Panel
				title="Calls over time"
				note="per second, both from their beginning"
				head={<Legend entries={legend} />}
				picture="compare-calls"
			>
				<Shown of={of} height={height}>
					{() =>
						both && (
							<TimeChart
								label="Calls per second over time, before and after"
								span={both.time.span}
								t={both.time.t}
								bucket={both.time.bucket}
								series={both.time.calls.map((values, i) => ({
									label: labels[i] ?? "",
									color: colors[i] ?? "",
									values,
									style: "line",
								}))}
								height={height}
								format={count}
								exact={(v) => `${exact(Math.round(v))}/s`}
								axis={sinceStart(both.time.bucket)}
							/>
						)
					}
				</Shown>
			</Panel>
			<Panel
				title="Latency"
				note="share of the calls by duration, powers of two"
				head={<Legend entries={legend} />}
				picture="compare-latency"
			>
				<Shown of={of} height={height}>
					{() =>
						both && (
							<TimeChart
								label="Share of the calls by duration, before and after"
								span={{ from: both.latency.low, to: both.latency.low + both.latency.t.length }}
								t={both.latency.t}
								bucket={1}
								series={both.latency.shares.map((values, i) => ({
									label: labels[i] ?? "",
									color: colors[i] ?? "",
									values,
									style: "line",
								}))}
								height={height}
								format={percent}
								axis={POWERS}
							/>
						)
					}
				</Shown>
			</Panel>
		</div>
	);
}

const PIXELS = 200;

function useTiles(id: string): Resource<Columns> {
	const path = sessionPath(id, `/tiles?by=none&latency=1&pixels=${PIXELS}`);
	return useResource(path, (signal) => columns(client, path, signal));
}

function joined(tiles: readonly [Resource<Columns>, Resource<Columns>]): Resource<Columns> {
	const [a, b] = tiles;
	return {
		data: a.data && b.data ? a.data : undefined,
		stale: a.stale || b.stale,
		loading: a.loading || b.loading,
		error: a.error ?? b.error,
	};
}

function sinceStart(bucket: number): Axis {
	return {
		ticks: (span, room) => ticks(span, timeStep(span, room)),
		format: (value) => time(value, 1e7),
		head: (index) => `${time(index * bucket, bucket)} after the first call`,
		sync: "compare",
	};
}

const POWERS: Axis = {
	ticks: (span) => {
		const made: number[] = [];
		for (let power = 0; power < 15; power += 1) {
			const at = power * Math.log2(10);
			if (at >= span.from && at <= span.to) made.push(at);
		}
		return made;
	},
	format: (value) => duration(2 ** value),
	head: () => "share of the calls that took so long",
};
