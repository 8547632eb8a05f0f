import { beforeEach, expect, it } from "vitest";
import { colourOf, ERROR, forgetColours, rampRgb } from "./colour";

beforeEach(forgetColours);

it("gives a thing the same colour whatever was asked before it", () => {
	const first = colourOf("syscall", "fsync", "dark");
	for (let i = 0; i < 30; i += 1) colourOf("syscall", `call${i}`, "dark");
	expect(colourOf("syscall", "fsync", "dark")).toBe(first);
});

it("keeps the colour of a thing while the page lives", () => {
	const before = ["a", "b", "c"].map((key) => colourOf("thread", key, "dark"));
	colourOf("thread", "z", "dark");
	expect(["a", "b", "c"].map((key) => colourOf("thread", key, "dark"))).toEqual(before);
});

it("tells the first fourteen of a kind apart", () => {
	const seen = new Set(Array.from({ length: 14 }, (_, i) => colourOf("file", `file ${i}`, "dark")));
	expect(seen.size).toBe(14);
});

it("has the same hue in both themes", () => {
	const hue = (text: string) => /hsl\((\d+)/.exec(text)?.[1];
	expect(hue(colourOf("syscall", "write", "dark"))).toBe(hue(colourOf("syscall", "write", "light")));
	expect(hue(colourOf("thread", "42", "dark"))).toBe(hue(colourOf("thread", "42", "light")));
});

it("keeps the colour of errors for errors", () => {
	for (let i = 0; i < 40; i += 1) expect(colourOf("process", String(i), "dark")).not.toBe(ERROR.dark);
});

it("grows brighter on dark ground and darker on light ground", () => {
	const light = (share: number, theme: "dark" | "light") => rampRgb(share, theme).reduce((a, b) => a + b, 0);
	for (let i = 1; i <= 10; i += 1) {
		expect(light(i / 10, "dark")).toBeGreaterThan(light((i - 1) / 10, "dark"));
		expect(light(i / 10, "light")).toBeLessThan(light((i - 1) / 10, "light"));
	}
});
