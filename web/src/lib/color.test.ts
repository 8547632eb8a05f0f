import { beforeEach, expect, it } from "vitest";
import { colorOf, ERROR, forgetColors, purposeOf, rampRgb } from "./color";

beforeEach(forgetColors);

it("gives a thing the same color whatever was asked before it", () => {
	const first = colorOf("syscall", "fsync", "dark");
	for (let i = 0; i < 30; i += 1) colorOf("syscall", `call${i}`, "dark");
	expect(colorOf("syscall", "fsync", "dark")).toBe(first);
});

it("keeps the color of a thing while the page lives", () => {
	const before = ["a", "b", "c"].map((key) => colorOf("thread", key, "dark"));
	colorOf("thread", "z", "dark");
	expect(["a", "b", "c"].map((key) => colorOf("thread", key, "dark"))).toEqual(before);
});

it("tells the first fourteen of a kind apart", () => {
	const seen = new Set(Array.from({ length: 14 }, (_, i) => colorOf("file", `file ${i}`, "dark")));
	expect(seen.size).toBe(14);
});

it("has the same hue in both themes", () => {
	const hue = (text: string) => /hsl\((\d+)/.exec(text)?.[1];
	expect(hue(colorOf("syscall", "write", "dark"))).toBe(hue(colorOf("syscall", "write", "light")));
	expect(hue(colorOf("thread", "42", "dark"))).toBe(hue(colorOf("thread", "42", "light")));
});

it("keeps the color of errors for errors", () => {
	for (let i = 0; i < 40; i += 1) expect(colorOf("process", String(i), "dark")).not.toBe(ERROR.dark);
});

it("grows brighter on dark ground and darker on light ground", () => {
	const light = (share: number, theme: "dark" | "light") => rampRgb(share, theme).reduce((a, b) => a + b, 0);
	for (let i = 1; i <= 10; i += 1) {
		expect(light(i / 10, "dark")).toBeGreaterThan(light((i - 1) / 10, "dark"));
		expect(light(i / 10, "light")).toBeLessThan(light((i - 1) / 10, "light"));
	}
});

it("gives calls the hue of their purpose, and each another shade", () => {
	const hue = (text: string) => Number(/hsl\((-?\d+)/.exec(text)?.[1]);
	expect([purposeOf("pread64"), purposeOf("fdatasync"), purposeOf("ioctl")]).toEqual(["read", "sync", "other"]);
	for (const name of ["read", "pwrite64", "fsync", "fdatasync", "openat", "statx"]) {
		const purpose = hue(colorOf("purpose", purposeOf(name), "dark"));
		expect(Math.abs(hue(colorOf("syscall", name, "dark")) - purpose)).toBeLessThan(15);
	}
	expect(colorOf("syscall", "fsync", "dark")).not.toBe(colorOf("syscall", "fdatasync", "dark"));
});

it("has one color for a state of threads in all views", () => {
	for (const theme of ["dark", "light"] as const) {
		expect(colorOf("reason", "cpu", theme)).toBe(colorOf("state", "runnable", theme));
		expect(colorOf("reason", "disk", theme)).toBe(colorOf("state", "device", theme));
		const waits = ["cpu", "poll", "child", "futex", "timer", "socket"].map((reason) =>
			colorOf("reason", reason, theme),
		);
		expect(new Set(waits).size).toBe(waits.length);
		expect(colorOf("series", "steal", theme)).not.toBe(colorOf("state", "runnable", theme));
	}
});
