import { describe, expect, it } from "vitest";
import { TABLE } from "../../state/queries";
import { evened, plotOf, type ResultColumns, resolved, unitOf } from "./plot";

function result(columns: Record<string, (number | string | null)[]>): ResultColumns {
	const names = Object.keys(columns);
	const of = (name: string) => columns[name] ?? [];
	return {
		rows: of(names[0] ?? "").length,
		names,
		f64: (name) => Float64Array.from(of(name), (v) => (v === null ? Number.NaN : Number(v))),
		texts: (name) => of(name).map((v) => (v === null ? null : String(v))),
		type: (name) => (of(name).every((v) => v === null || typeof v === "number") ? "Float64" : "Utf8"),
	};
}

const LINE = { ...TABLE, form: "line" as const };

describe("what fits", () => {
	it("is time across, numbers up, and a text for the series", () => {
		const data = result({ syscall: ["read"], ts_ns: [5], calls: [3] });
		expect(resolved(data, LINE)).toEqual({ ...LINE, x: "ts_ns", y: ["calls"], series: "syscall" });
	});
	it("is a text across where there is no time", () => {
		const data = result({ path: ["a"], bytes: [3] });
		expect(resolved(data, LINE)).toEqual({ ...LINE, x: "path", y: ["bytes"], series: "" });
	});
	it("is two numbers for points", () => {
		const data = result({ syscall: ["read"], size: [5], calls: [3] });
		const full = resolved(data, { ...TABLE, form: "dots" });
		expect(full).toMatchObject({ x: "size", y: ["calls"], series: "syscall" });
	});
	it("is nothing without numbers", () => {
		expect(resolved(result({ a: ["x"], b: ["y"] }), LINE)).toBeNull();
	});
	it("keeps what was chosen, as far as it is there", () => {
		const data = result({ a: [1], b: [2], c: [3], d: ["t"] });
		expect(resolved(data, { ...LINE, x: "b", y: ["c", "gone"], series: "none" })).toEqual({
			...LINE,
			x: "b",
			y: ["c"],
			series: "",
		});
	});
});

describe("a plot", () => {
	it("has times since the session's start", () => {
		const data = result({ ts_ns: [1010, 1000, 1020], n: [2, 1, 3] });
		const made = plotOf(data, { ...LINE, x: "ts_ns", y: ["n"] }, 1000);
		expect(made.kind).toBe("time");
		expect([...made.at]).toEqual([0, 10, 20]);
		expect([...(made.series[0]?.values ?? [])]).toEqual([1, 2, 3]);
		expect(made.span).toEqual({ from: 0, to: 30 });
	});
	it("has a series for each text, and adds what falls together", () => {
		const data = result({ x: [1, 1, 2, 2], who: ["a", "b", "a", "a"], n: [1, 2, 3, 4] });
		const made = plotOf(data, { ...LINE, x: "x", y: ["n"], series: "who" }, 0);
		expect(made.series.map((s) => s.label)).toEqual(["a", "b"]);
		expect([...(made.series[0]?.values ?? [])]).toEqual([1, 7]);
		expect(made.joined).toBe(1);
	});
	it("has categories in the order of the rows", () => {
		const data = result({ path: ["b", "a", null], n: [1, 2, 3] });
		const made = plotOf(data, { ...LINE, x: "path", y: ["n"] }, 0);
		expect(made.names).toEqual(["b", "a", "null"]);
		expect(made.step).toBe(1);
	});
	it("puts series beyond the first twelve together", () => {
		const who = Array.from({ length: 20 }, (_, i) => `w${i}`);
		const data = result({ x: who.map(() => 1), who, n: who.map((_, i) => i) });
		const made = plotOf(data, { ...LINE, x: "x", y: ["n"], series: "who" }, 0);
		expect(made.series).toHaveLength(13);
		expect(made.series[12]).toMatchObject({ key: null, label: "all others" });
		expect(made.series[12]?.values[0]).toBe(0 + 1 + 2 + 3 + 4 + 5 + 6 + 7);
	});
	it("knows an even grid with gaps, and fills it", () => {
		const data = result({ x: [0, 10, 40], n: [1, 2, 3] });
		const made = evened(plotOf(data, { ...LINE, x: "x", y: ["n"] }, 0));
		expect([...made.at]).toEqual([0, 10, 20, 30, 40]);
		expect([...(made.series[0]?.values ?? [])]).toEqual([1, 2, Number.NaN, Number.NaN, 3]);
		expect(plotOf(result({ x: [0, 1, 3.5], n: [1, 1, 1] }), { ...LINE, x: "x", y: ["n"] }, 0).step).toBeNull();
	});
	it("of nothing is empty", () => {
		expect(plotOf(result({ x: [], n: [] }), { ...LINE, x: "x", y: ["n"] }, 0).at).toHaveLength(0);
	});
});

it("units follow names", () => {
	expect(unitOf("dur_ns")).toBe("duration");
	expect(unitOf("read_bytes")).toBe("bytes");
	expect(unitOf("hit_ratio")).toBe("share");
	expect(unitOf("calls")).toBe("number");
});
