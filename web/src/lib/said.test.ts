import { expect, it } from "vitest";
import { said } from "./said";

const t = [0, 10, 20];
const plain = (value: number) => `${value}`;

it("a plot in words has the highest value of each series, and when", () => {
	const series = [
		{ label: "read", values: [1, 7, 3] },
		{ label: "written", values: [0, 0, 0] },
		{ label: "p99", values: [Number.NaN, Number.NaN, 2] },
		{ label: "none", values: [Number.NaN] },
	];
	expect(
		said(
			series,
			t,
			(v) => `${v} B`,
			(at) => `${at} s`,
		),
	).toBe("read: at most 7 B, at 10 s; written: 0 throughout; p99: at most 2 B, at 20 s; none: nothing");
});

it("many series are counted", () => {
	const series = Array.from({ length: 9 }, (_, i) => ({ label: `s${i}`, values: [i + 1] }));
	expect(said(series, t, plain, plain)).toMatch(/^s0: at most 1, at 0; .*and 3 more$/);
});

it("values below zero are values", () => {
	expect(said([{ label: "a", values: [-3, -2] }], t, plain, plain)).toBe("a: at most -2, at 10");
});
