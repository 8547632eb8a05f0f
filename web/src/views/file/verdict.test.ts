import { expect, it } from "vitest";
import { type Figured, type Pattern, patternText, verdictText } from "./verdict";

const figures = (of: Partial<Figured>): Figured => ({
	reads: null,
	writes: null,
	touches: null,
	faults: 0,
	threads: 1,
	...of,
});

it("says how a file is read and written", () => {
	const writes = { sequential: 0.962, forward: 0.97, backward: 0.03, passes: 9 };
	const reads = { sequential: 0.02, forward: 0.5, backward: 0.5, passes: 400 };
	expect(verdictText(figures({ reads, writes, threads: 2 }))).toBe(
		"Per thread: writes 96.2 % sequential in 9 passes; reads random (2 % sequential)",
	);
	expect(verdictText(figures({ reads: { sequential: 1, forward: 1, backward: 0, passes: 1 }, threads: 8 }))).toBe(
		"Per thread: reads 100 % sequential in one pass",
	);
	expect(verdictText(figures({ writes: { sequential: 0, forward: 0.98, backward: 0.02, passes: 2 } }))).toBe(
		"Writes forward with gaps in 2 passes (0 % sequential)",
	);
	expect(verdictText(figures({ reads, writes }))).toBe(
		"Writes 96.2 % sequential in 9 passes; reads random (2 % sequential)",
	);
	expect(verdictText(figures({}))).toBe("");
});

it("says how a mapped file is touched", () => {
	const text = (forward: number, backward: number, passes: number) =>
		verdictText(figures({ faults: 1039, touches: { forward, backward, passes } }));
	expect(text(0, 1, 1)).toBe("1\u202f039 page faults, 100 % backward in one pass");
	expect(text(0.9, 0.1, 104)).toBe("1\u202f039 page faults, 90 % forward in 104 passes");
	expect(text(0.5, 0.5, 500)).toBe("1\u202f039 page faults, in no order (50 % forward, 50 % backward)");
	expect(text(0, 0, 1)).toBe("1\u202f039 page faults, on the same pages again and again");
});

/** The pattern of reads of 4 KiB at these blocks, as the server counts it. */
function pattern(blocks: readonly number[]): Pattern {
	const pairs = blocks.slice(1).map((here, i) => here - (blocks[i] ?? 0));
	const share = (of: (step: number) => boolean) => pairs.filter(of).length / pairs.length;
	return {
		sequential: share((step) => step === 1),
		forward: share((step) => step >= 1),
		backward: share((step) => step < 0),
		passes: 1 + pairs.filter((step) => step < 0).length,
	};
}

/** Whole numbers below `end`, in no order, the same each time. */
function random(length: number, end: number): number[] {
	let state = 7;
	return Array.from({ length }, () => {
		state = (state * 1103515245 + 12345) % 2147483648;
		return Math.floor((state / 2147483648) * end);
	});
}

const scan = Array.from({ length: 1000 }, (_, i) => i);

it.each<[string, number[], RegExp]>([
	["a scan", scan, /^100 % sequential in one pass$/],
	["a scan, three times", [...scan, ...scan, ...scan], /^99\.9 % sequential in 3 passes$/],
	["a small file, many times", random(100, 1).flatMap(() => scan.slice(0, 10)), /^90.* % sequential in 100 passes$/],
	["random reads", random(1000, 10_000), /^random \(/],
	["a scan, then as many random reads", [...scan, ...random(1000, 1000)], /^5\d.* % sequential, the others random$/],
	["a long scan, then random reads", [...scan, ...random(250, 1000)], /^8\d.* % sequential, the others random$/],
	["gaps", scan.map((i) => 3 * i), /^forward with gaps in one pass \(0 % sequential\)$/],
	["backward", [...scan].reverse(), /^backward \(0 % sequential\)$/],
	["one block", scan.map(() => 5), /^over the same bytes again and again$/],
])("names %s", (_, blocks, text) => {
	expect(patternText(pattern(blocks))).toMatch(text);
});
