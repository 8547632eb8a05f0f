// The machine as a whole: the plots above the lanes, from what the server sends.

import type { Columns } from "../../api/arrow";
import { colorOf, type Theme } from "../../lib/color";
import { bytes, duration, exact, percent, visible } from "../../lib/format";

export interface MachineLine {
	label: string;
	color: string;
	/** NaN where it is not known. */
	values: Float64Array;
	/** `stack` lies on the stacks before it; `limit` is a broken line. */
	style: "stack" | "line" | "limit";
	/** A value with its unit, and what it was made of. */
	show: (value: number, row: number) => string;
}

export interface MachinePlot {
	title: string;
	/** What a value is, for those who do not see the plot. */
	what: string;
	/** Begin and length of what each value is of; values of no length are of the time itself. */
	t: Float64Array;
	dur: Float64Array;
	/** When each value is drawn from. */
	from: Float64Array;
	lines: MachineLine[];
	/** The value at the upper edge. */
	top: number;
	/** In pixels. */
	high: number;
	format: (value: number) => string;
}

export type MachineColumns = Pick<Columns, "rows" | "f64" | "texts" | "metaNumber" | "metaFlag">;

/** What a limit is drawn in. */
const LIMIT = "var(--ink)";
/** Room for a title and two lines below it, for one line, and for the title alone. */
const HIGHEST = 44;
const HIGH = 32;
const LOW = 20;
/** How high the plots will be, before they are there. */
export function expectedHeight(devices: boolean): number {
	return HIGHEST + (devices ? 5 : 4) * HIGH;
}
/** Devices in one plot. */
const TOGETHER = 4;

function highest(lines: readonly MachineLine[], stacked: boolean): number {
	let most = 0;
	const length = lines[0]?.values.length ?? 0;
	for (let i = 0; i < length; i += 1) {
		const values = lines.map((line) => line.values[i] || 0);
		most = Math.max(most, stacked ? values.reduce((a, b) => a + b, 0) : Math.max(...values));
	}
	return most;
}

function known(values: Float64Array): boolean {
	return values.some((value) => Number.isFinite(value));
}

/** The plots of table machine; those without any value are left out. `memory` is all that there is. */
export function machinePlots(answer: MachineColumns, cpus: number, memory: number, theme: Theme): MachinePlot[] {
	const t = answer.f64("t");
	const dur = answer.f64("dur");
	const means = (answer.metaNumber("bucket_ns") ?? 0) > 0;
	const ends = t.map((at, i) => at + (dur[i] ?? 0));
	// A level is that at the end of its second; of several seconds it is the mean.
	const level = { t: means ? t : ends, dur: means ? dur : new Float64Array(t.length), from: t };
	const bytesOf = (value: number) => `${bytes(value)} (${exact(Math.round(value))} B)`;
	const plots: MachinePlot[] = [];
	const times = ["user", "system", "interrupt", "iowait", "idle", "steal"].map((name) => answer.f64(`${name}_ns`));
	const whole = t.map((_, i) => times.reduce((a, values) => a + (values[i] || 0), 0));
	const share = (name: string, label: string, color: string): MachineLine => {
		const ns = answer.f64(`${name}_ns`);
		return {
			label,
			color,
			style: "stack",
			values: ns.map((value, i) => ((whole[i] ?? 0) > 0 ? value / (whole[i] ?? 1) : Number.NaN)),
			show: (value, row) => `${percent(value)} (${duration(ns[row] ?? Number.NaN)})`,
		};
	};
	plots.push({
		title: "Processors",
		what: `share of the time of all ${cpus}`,
		t,
		dur,
		from: t,
		lines: [
			share("user", "user", colorOf("layer", "user", theme)),
			share("system", "system", colorOf("layer", "syscall", theme)),
			share("interrupt", "interrupt", colorOf("layer", "irq", theme)),
			share("iowait", "iowait", colorOf("layer", "device", theme)),
			share("steal", "steal", colorOf("series", "steal", theme)),
		],
		top: 1,
		high: HIGHEST,
		format: percent,
	});
	const running = answer.f64("running_threads");
	if (known(running)) {
		const show = (value: number) => exact(Math.round(value * 100) / 100);
		const threads: MachineLine = {
			label: "threads",
			// Those that run and those that wait for a CPU.
			color: colorOf("series", "calls", theme),
			values: running,
			style: "stack",
			show,
		};
		const limit: MachineLine = {
			label: "processors",
			color: LIMIT,
			values: new Float64Array(t.length).fill(cpus),
			style: "limit",
			show,
		};
		plots.push({
			title: "Runnable threads",
			what: "threads that run or want a processor",
			...level,
			lines: [threads, limit],
			top: Math.max(cpus * 1.5, highest([threads], true)),
			high: HIGH,
			format: show,
		});
	}
	const memoryLine = (name: string, label: string, color: string): MachineLine => ({
		label,
		color,
		values: answer.f64(`${name}_bytes`),
		style: "stack",
		show: bytesOf,
	});
	const stacked = (title: string, what: string, lines: MachineLine[], least: number) => {
		const shown = lines.filter((line) => known(line.values));
		if (shown.length === 0) return;
		plots.push({
			title,
			what,
			...level,
			lines: shown,
			top: Math.max(least, highest(shown, true)),
			high: HIGH,
			format: bytes,
		});
	};
	stacked(
		"Available memory",
		"bytes that programs could have",
		[memoryLine("available", "available", colorOf("reason", "page_fault", theme))],
		memory,
	);
	stacked(
		"To be written",
		"bytes of the page cache",
		[
			memoryLine("dirty", "dirty", colorOf("layer", "pagecache", theme)),
			memoryLine("writeback", "being written", colorOf("layer", "block", theme)),
		],
		1,
	);
	const pressure = (name: string, label: string, color: string): MachineLine => {
		const ns = answer.f64(`${name}_stalled_ns`);
		return {
			label,
			color,
			style: "line",
			values: ns.map((value, i) => value / (dur[i] || Number.NaN)),
			show: (value, row) => `${percent(value)} (${duration(ns[row] ?? Number.NaN)})`,
		};
	};
	const stalls = [
		pressure("cpu", "cpu", colorOf("state", "runnable", theme)),
		pressure("io", "io", colorOf("layer", "device", theme)),
		pressure("memory", "memory", colorOf("reason", "page_fault", theme)),
	].filter((line) => known(line.values));
	if (stalls.length > 0) {
		plots.push({
			title: "Stalled",
			what: "share of the time in which some thread was stalled",
			t,
			dur,
			from: t,
			lines: stalls,
			top: Math.max(0.1, highest(stalls, false)),
			high: HIGH,
			format: percent,
		});
	}
	return plots;
}

/** Devices by the time in which they were busy, the busiest first. */
export function devicesOf(answer: MachineColumns): string[] {
	const busy = answer.f64("busy");
	const sums = new Map<string, number>();
	answer.texts("key").forEach((key, i) => {
		if (key !== null) sums.set(key, (sums.get(key) ?? 0) + (busy[i] ?? 0));
	});
	return [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([key]) => key);
}

/** The busy shares of the busiest devices in one plot; with `each` of every device in its own. */
export function devicePlots(answer: MachineColumns, each: boolean, theme: Theme): MachinePlot[] {
	const from = answer.metaNumber("from") ?? 0;
	const to = answer.metaNumber("to") ?? 0;
	const bucket = answer.metaNumber("bucket_ns") ?? 0;
	const devices = devicesOf(answer);
	const keys = answer.texts("key");
	const length = bucket > 0 ? Math.ceil((to - from) / bucket) : 0;
	const t = Float64Array.from({ length }, (_, i) => from + i * bucket);
	const dur = t.map((at) => Math.min(bucket, to - at));
	const lineOf = (device: string): MachineLine => {
		const values = new Float64Array(length);
		const at = answer.f64("t");
		const busy = answer.f64("busy");
		keys.forEach((key, i) => {
			if (key === device) values[Math.round(((at[i] ?? 0) - from) / bucket)] = busy[i] ?? 0;
		});
		return {
			label: visible(device),
			color: colorOf("device", device, theme),
			values,
			style: each || devices.length === 1 ? "stack" : "line",
			show: (value, row) => `${percent(value)} (${duration(value * (dur[row] ?? 0))})`,
		};
	};
	const plot = (title: string, lines: MachineLine[]): MachinePlot => ({
		title,
		what: "share of the time with at least one request in the device",
		t,
		dur,
		from: t,
		lines,
		top: 1,
		high: each ? LOW : HIGH,
		format: percent,
	});
	if (each || devices.length === 1) return devices.map((device) => plot(`${visible(device)} busy`, [lineOf(device)]));
	return [plot("Devices busy", devices.slice(0, TOGETHER).map(lineOf))];
}

/** The plot at a height, with all of them below each other. */
export function plotAt<P extends Pick<MachinePlot, "high">>(plots: readonly P[], y: number): P | undefined {
	let bottom = 0;
	return plots.find(({ high }) => {
		bottom += high;
		return y < bottom;
	});
}

/** The row of a plot at a time; -1 where there is none. */
export function rowAt(plot: Pick<MachinePlot, "from" | "t" | "dur">, t: number): number {
	let found = -1;
	for (let i = 0; i < plot.from.length && (plot.from[i] ?? 0) <= t; i += 1) found = i;
	if (found < 0) return -1;
	const end = (plot.t[found] ?? 0) + (plot.dur[found] ?? 0);
	return t < end ? found : -1;
}
