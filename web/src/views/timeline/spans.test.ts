import { describe, expect, it } from "vitest";
import { nest, type SpanBar } from "./spans";

const bar = (id: string, t: number, dur: number): SpanBar => ({
	trace: "",
	id,
	service: null,
	name: id,
	kind: "server",
	t,
	dur,
	failed: false,
	depth: -1,
});

describe("the rows of a thread's spans", () => {
	it("are deeper for spans in others", () => {
		const spans = [bar("inner", 10, 20), bar("outer", 0, 100), bar("innermost", 15, 5), bar("next", 40, 10)];
		expect(nest(spans)).toBe(3);
		expect(spans.map(({ id, depth }) => [id, depth])).toEqual([
			["outer", 0],
			["inner", 1],
			["innermost", 2],
			["next", 1],
		]);
	});
	it("are used again by spans that follow", () => {
		const spans = [bar("a", 0, 10), bar("b", 10, 10)];
		expect(nest(spans)).toBe(1);
	});
	it("are three at most", () => {
		const spans = [0, 1, 2, 3, 4].map((i) => bar(String(i), i, 100 - 10 * i));
		expect(nest(spans)).toBe(3);
		expect(spans.map(({ depth }) => depth)).toEqual([0, 1, 2, 2, 2]);
	});
});
