import { describe, expect, it } from "vitest";
import {
	bothDurations,
	bytes,
	count,
	counted,
	duration,
	exactDuration,
	exactTime,
	percent,
	shortPath,
	time,
	visible,
} from "./format";

describe("durations", () => {
	it.each([
		[0, "0 ns"],
		[812, "812 ns"],
		[999.6, "1 µs"],
		[1234, "1.23 µs"],
		[45_600_000, "45.6 ms"],
		[999_600_000, "1 s"],
		[12.34e9, "12.3 s"],
		[125e9, "2 m 05 s"],
		[3599.6e9, "1 h 00 m"],
		[26 * 3600e9, "26 h 00 m"],
		[5 * 86400e9, "5 d 0 h"],
		[-1500, "-1.5 µs"],
		[Number.NaN, "–"],
	])("%d ns is %s", (ns, text) => expect(duration(ns)).toBe(text));

	it("tells every nanosecond where asked to", () => {
		expect(exactDuration(1234567)).toBe("1\u202f234\u202f567 ns");
		expect(bothDurations(1234567)).toBe("1.23 ms (1\u202f234\u202f567 ns)");
		expect(bothDurations(812)).toBe("812 ns");
		expect(bothDurations(-812)).toBe("-812 ns");
		expect(bothDurations(-1234567)).toBe("-1.23 ms (-1\u202f234\u202f567 ns)");
	});
});

it("counts in the word's form", () => {
	expect(counted(1, "access", "accesses")).toBe("1 access");
	expect(counted(0, "access", "accesses")).toBe("0 accesses");
	expect(counted(12000, "call", "calls", count)).toBe("12 k calls");
});

describe("points in time", () => {
	it("are as fine as the distance of ticks", () => {
		expect(time(3.25e9, 1e9)).toBe("3 s");
		expect(time(3.25e9, 250e6)).toBe("3.3 s");
		expect(time(3.25e9, 50e6)).toBe("3.25 s");
		expect(time(3_000_250_000, 50_000)).toBe("3.000\u202f250 s");
		expect(time(3_000_250_000, 1000)).toBe("3.000\u202f250 s");
	});
	it("carry into minutes and hours", () => {
		expect(time(59.9996e9, 1e9)).toBe("1:00");
		expect(time(3723.5e9, 1e8)).toBe("1:02:03.5");
	});
	it("keep nanoseconds after a day", () => {
		expect(exactTime(90_061_000_000_007)).toBe("25:01:01.000\u202f000\u202f007");
	});
});

describe("sizes and counts", () => {
	it("use binary units for bytes and decimal ones for counts", () => {
		expect(bytes(4096)).toBe("4 KiB");
		expect(bytes(1000)).toBe("0.98 KiB");
		expect(count(12345)).toBe("12.3 k");
		expect(count(999_600)).toBe("1 M");
	});
	it("never rounds something to nothing or to all", () => {
		expect(percent(0.00001)).toBe("< 0.01 %");
		expect(percent(0.99999)).toBe("> 99.99 %");
		expect(percent(1)).toBe("100 %");
	});
});

describe("text of traced programs", () => {
	it("shows what cannot be seen and turns nothing around", () => {
		expect(visible("a\nb\u202Egpj.exe\u001b[31m")).toBe("a\\nb\\u202egpj.exe\\x1b[31m");
	});
	it("is left alone otherwise", () => {
		expect(visible("<img src=x onerror=alert(1)> é 日本")).toBe("<img src=x onerror=alert(1)> é 日本");
	});
	it("cuts paths at their beginning", () => {
		expect(shortPath("/var/lib/redis/appendonly.aof", 22)).toBe("/var/l…/appendonly.aof");
		expect(shortPath("/a/very-long-name-that-does-not-fit", 12)).toBe("…oes-not-fit");
		expect(shortPath("/etc/hosts", 22)).toBe("/etc/hosts");
	});
});
