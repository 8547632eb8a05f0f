// The two sides over time and by latency. Of several sessions a side the first is drawn over time.

import { useMemo } from "react";
import type { Columns } from "../../api/arrow";
import { columns, selectionText, sessionPath } from "../../api/session";
import { Legend } from "../../components/legend";
import { Panel, Shown } from "../../components/panel";
import type { Axis } from "../../components/plotframe";
import { Segmented } from "../../components/segmented";
import { TimeChart } from "../../components/timechart";
import { useTall } from "../../components/useTall";
import { colorOf } from "../../lib/color";
import { bothDurations, bytes, count, duration, exact, percent, time, visible } from "../../lib/format";
import { ticks, timeStep } from "../../lib/scale";
import { type Resource, useResource } from "../../state/resource";
import { client } from "../../state/server";
import { useParam } from "../../state/store";
import { useTheme } from "../../state/theme";
import { OF, type OverTimeOf, overTime, survival } from "./curves";
import type { Sides } from "./leads";

const OVER_TIME: readonly (readonly [OverTimeOf, string])[] = [
	["max", "longest call"],
	["p99", "p99"],
	["calls", "calls/s"],
	["bytes", "bytes/s"],
];

interface Props {
	before: string;
	after: string;
	/** Names of the system calls whose time differs most. */
	syscalls: readonly string[];
}

export function Curves({ before, after, syscalls }: Props) {
	const theme = useTheme();
	const height = useTall(190, 0.18);
	const [call, setCall] = useParam("call", "");
	const [param, setOf] = useParam("over", "max");
	const of = OVER_TIME.find(([id]) => id === param)?.[0] ?? "max";
	const chosen = syscalls.includes(call) ? call : "";
	const tiles = [useTiles(before, chosen), useTiles(after, chosen)] as const;
	const data = [tiles[0].data, tiles[1].data] as const;
	const both = useMemo(() => {
		const [a, b] = data;
		return a && b ? { time: overTime(a, b, of), survival: survival(a, b) } : null;
	}, [data[0], data[1], of]);
	const answer = joined(tiles);
	const colors = [colorOf("series", "before", theme), colorOf("series", "after", theme)] as const;
	const labels = [before, after].map((id) => visible(id.replace(/\.fathom$/, "")));
	const legend = labels.map((label, i) => ({ label, color: colors[i] ?? "" }));
	const series = (values: readonly Float64Array[]) =>
		values.map((line, i) => ({
			label: labels[i] ?? "",
			color: colors[i] ?? "",
			values: line,
			style: "line" as const,
		}));
	const times = of === "max" || of === "p99";
	const format = times ? duration : of === "bytes" ? bytes : count;
	const what = chosen === "" ? "all calls" : chosen;
	return (
		<>
			<div className="compare-choice">
				<Segmented
					label="Calls in the plots"
					value={chosen}
					options={[["", "all calls"], ...syscalls.map((name) => [name, visible(name)] as const)]}
					onChange={setCall}
				/>
			</div>
			<div className="compare-plots">
				<Panel
					title="How long calls take"
					note={`share of ${what} that take this long or longer`}
					head={<Legend entries={legend} />}
					picture="compare-survival"
				>
					<Shown of={answer} height={height}>
						{() =>
							both && (
								<TimeChart
									label={`Share of ${what} by duration or longer, before and after, both axes logarithmic`}
									span={{ from: both.survival.t[0] ?? 0, to: both.survival.t.at(-1) ?? 1 }}
									t={both.survival.t}
									bucket={1}
									series={series(both.survival.values)}
									height={height}
									format={(value) => share(value / OF)}
									axis={POWERS}
									log
									loose
								/>
							)
						}
					</Shown>
				</Panel>
				<Panel
					title="Over time"
					note="both from their first call"
					head={<Legend entries={legend} />}
					end={<Segmented label="Figure" value={of} options={OVER_TIME} onChange={setOf} />}
					picture="compare-time"
				>
					<Shown of={answer} height={height}>
						{() =>
							both && (
								<TimeChart
									label={`${OVER_TIME.find(([id]) => id === of)?.[1]} over time, before and after`}
									span={both.time.span}
									t={both.time.t}
									bucket={both.time.bucket}
									series={series(both.time.values)}
									height={height}
									format={format}
									exact={(v) => (times ? bothDurations(v) : `${exact(Math.round(v))}/s`)}
									binary={of === "bytes"}
									log={times}
									axis={sinceStart(both.time.bucket)}
								/>
							)
						}
					</Shown>
				</Panel>
			</div>
		</>
	);
}

/** A share of which the small ones matter most. */
function share(value: number): string {
	if (value > 0.999_999) return "100 %";
	if (value >= 0.001) return percent(value);
	return `${Number((value * 100).toPrecision(1))} %`;
}

const PIXELS = 200;

function useTiles(id: string, syscall: string): Resource<Columns> {
	const filter = syscall === "" ? {} : { syscall: [syscall] };
	const query = selectionText({ pixels: PIXELS, filter }, { by: "none", latency: 1, busy: 1 });
	const path = sessionPath(id, `/tiles${query}`);
	return useResource(path, (signal) => columns(client, path, signal));
}

/** The page faults on mapped files of the first session of each side. */
export interface Faults {
	before: { count: number; ns: number };
	after: { count: number; ns: number };
}

/** Null while they are not known, and if neither side has any. */
export function useFaults(ready: boolean, sides: Sides): Faults | null {
	const before = useFaultsOf(ready ? sides.before : null);
	const after = useFaultsOf(ready ? sides.after : null);
	return before && after && before.count + after.count > 0 ? { before, after } : null;
}

function useFaultsOf(id: string | null): Faults["before"] | null {
	const path = id === null ? null : sessionPath(id, `/tiles${selectionText({ pixels: 1 }, { by: "none", faults: 1 })}`);
	const { data } = useResource(path, (signal) => columns(client, path ?? "", signal));
	if (!data?.has("faults")) return null;
	const sum = (name: string) => data.f64(name).reduce((all, v) => all + (Number.isFinite(v) ? v : 0), 0);
	return { count: sum("faults"), ns: sum("fault_ns") };
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
	head: () => "share of the calls that take this long or longer",
};
