import { expect, it } from "vitest";
import { devicePlots, devicesOf, type MachineColumns, machinePlots, plotAt, rowAt } from "./machine";

const NAN = Number.NaN;

function answer(
	rows: number,
	numbers: Record<string, number[]>,
	meta: Record<string, number> = {},
	keys: (string | null)[] = [],
): MachineColumns {
	return {
		rows,
		f64: (name) => Float64Array.from(numbers[name] ?? new Array<number>(rows).fill(NAN)),
		texts: () => keys,
		metaNumber: (name) => meta[name] ?? null,
		metaFlag: () => false,
	};
}

/** Two seconds of a machine with two processors, of which the kernel keeps no pressure. */
const TIMES = {
	t: [0, 1e9],
	dur: [1e9, 0.5e9],
	user_ns: [1e9, 0.25e9],
	system_ns: [0.5e9, 0],
	interrupt_ns: [0, 0],
	iowait_ns: [0.1e9, 0.5e9],
	idle_ns: [0.4e9, 0.25e9],
	steal_ns: [0, 0],
	running_threads: [3, 1],
	available_bytes: [4096, 2048],
	dirty_bytes: [0, 512],
	writeback_bytes: [NAN, NAN],
};

it("has the shares of all processors, which are idle for the rest", () => {
	const [processors] = machinePlots(answer(2, TIMES), 2, 8192, "dark");
	expect(processors?.lines.map((line) => [...line.values])).toEqual([
		[0.5, 0.25],
		[0.25, 0],
		[0, 0],
		[0.05, 0.5],
		[0, 0],
	]);
	expect(processors?.lines[0]?.show(0.5, 0)).toBe("50 % (1 s)");
	expect(processors?.top).toBe(1);
});

it("leaves out plots of what the kernel does not keep", () => {
	const titles = (columns: MachineColumns) => machinePlots(columns, 2, 8192, "dark").map((plot) => plot.title);
	const without = ["Processors", "Runnable threads", "Available memory", "To be written"];
	expect(titles(answer(2, TIMES))).toEqual(without);
	expect(titles(answer(2, { ...TIMES, io_stalled_ns: [0, 0.25e9] }))).toEqual([...without, "Stalled"]);
	expect(titles(answer(2, { ...TIMES, running_threads: [NAN, NAN] }))).not.toContain("Runnable threads");
});

it("has pressure as a share of the time that passed", () => {
	const plots = machinePlots(answer(2, { ...TIMES, io_stalled_ns: [0, 0.25e9] }), 2, 8192, "dark");
	const stalled = plots.at(-1);
	expect(stalled?.lines.map((line) => [line.label, ...line.values])).toEqual([["io", 0, 0.5]]);
	expect(stalled?.top).toBe(0.5);
});

it("shows levels at the ends of seconds, and of longer buckets their means", () => {
	const threads = machinePlots(answer(2, TIMES), 2, 8192, "dark")[1];
	expect([...(threads?.t ?? [])]).toEqual([1e9, 1.5e9]);
	expect([...(threads?.from ?? [])]).toEqual([0, 1e9]);
	expect(threads && rowAt(threads, 1.2e9)).toBe(1);
	const means = machinePlots(answer(2, TIMES, { bucket_ns: 2e9 }), 2, 8192, "dark")[1];
	expect([...(means?.t ?? [])]).toEqual([0, 1e9]);
	// The processors are a line of their own, and more threads than these are seen.
	expect(threads?.lines.map((line) => [...line.values])).toEqual([
		[3, 1],
		[2, 2],
	]);
	expect(threads?.top).toBe(3);
});

it("finds the row at a time, and none before the first or behind the last", () => {
	const [plot] = machinePlots(answer(2, TIMES), 2, 8192, "dark");
	const at = (t: number) => plot && rowAt(plot, t);
	expect([at(-1), at(0), at(0.999e9), at(1e9), at(1.5e9)]).toEqual([-1, 0, 0, 1, -1]);
});

it("finds the plot at a height, and none below the last", () => {
	const plots = [
		{ high: 44, name: "a" },
		{ high: 20, name: "b" },
	];
	expect([0, 43, 44, 63, 64].map((y) => plotAt(plots, y)?.name)).toEqual(["a", "a", "b", "b", undefined]);
});

it("has devices by their busy time, together or each by itself", () => {
	const keys = ["a", "b", "b", "c", "d", "e"];
	const numbers = { t: [100, 100, 110, 110, 110, 110], busy: [0.5, 0.25, 1, 0.4, 0.3, 0.2] };
	const columns = answer(6, numbers, { from: 100, to: 115, bucket_ns: 10 }, keys);
	expect(devicesOf(columns)).toEqual(["b", "a", "c", "d", "e"]);
	const [together, ...more] = devicePlots(columns, false, "dark");
	expect(more).toEqual([]);
	expect(together?.lines.map((line) => [line.label, ...line.values])).toEqual([
		["b", 0.25, 1],
		["a", 0.5, 0],
		["c", 0, 0.4],
		["d", 0, 0.3],
	]);
	// The last bucket ends with the window.
	expect([...(together?.dur ?? [])]).toEqual([10, 5]);
	expect(together?.lines[0]?.show(1, 1)).toBe("100 % (5 ns)");
	expect(devicePlots(columns, true, "dark").map((plot) => plot.title)).toEqual([
		"b busy",
		"a busy",
		"c busy",
		"d busy",
		"e busy",
	]);
});
