import { describe, expect, it, vi } from "vitest";
import { ancestor, levelFor, TILE_BUCKETS, TileCache, type TileId, tileSpan, tilesIn, wantedTiles } from "./tiles";

const START = 12_947_920_982_128;

describe("tiles", () => {
	it("have buckets of two to four pixels", () => {
		for (const [width, span] of [
			[1280, 1e9],
			[2560, 7.3e12],
			[1000, 20],
			[777, 123456],
		] as const) {
			const level = levelFor({ from: 0, to: span }, width);
			const pixels = (2 ** level / span) * width;
			expect(pixels).toBeGreaterThanOrEqual(2 - 1e-9);
			if (level > 0) expect(pixels).toBeLessThan(4);
		}
	});
	it("cover a window without gaps, on buckets of the clock", () => {
		const span = { from: 1e9, to: 3e9 };
		const ids = tilesIn(span, 20, 0, START);
		let at = tileSpan(ids[0] as TileId, START).from;
		expect(at).toBeLessThanOrEqual(span.from);
		for (const id of ids) {
			const t = tileSpan(id, START);
			expect(t.from).toBe(at);
			expect((t.from + START) % (TILE_BUCKETS * 2 ** 20)).toBe(0);
			at = t.to;
		}
		expect(at).toBeGreaterThanOrEqual(span.to);
	});
	it("lie in those of coarser levels", () => {
		const id = tilesIn({ from: 5e9, to: 5e9 + 1 }, 3, 2, START)[0] as TileId;
		const up = tileSpan(ancestor(id, 9), START);
		const own = tileSpan(id, START);
		expect(up.from).toBeLessThanOrEqual(own.from);
		expect(up.to).toBeGreaterThanOrEqual(own.to);
	});
	it("are wanted from the middle outwards, then beside, then above, and inside the session only", () => {
		const span = { from: 10e9, to: 12e9 };
		const level = levelFor(span, 1500);
		const { seen: now, ahead } = wantedTiles(span, { from: 0, to: 12e9 }, level, [0], START, () => false);
		const wanted = [...now, ...ahead];
		const seen = tilesIn(span, level, 0, START);
		expect(
			wanted
				.slice(0, seen.length)
				.map((w) => w.index)
				.sort(),
		).toEqual(seen.map((s) => s.index).sort());
		expect(wanted.at(-1)?.level).toBe(level + 1);
		for (const id of wanted) expect(tileSpan(id, START).from).toBeLessThan(12e9);
	});
});

describe("the cache", () => {
	const id = (index: number, level = 0): TileId => ({ level, index, block: 0 });

	function cache(capacity = 10) {
		const asked: { id: TileId; signal: AbortSignal; done: (value: string) => void; fail: (error: unknown) => void }[] =
			[];
		const arrived = vi.fn();
		const failed = vi.fn();
		const made = new TileCache<string>({
			load: (id, signal) => new Promise((done, fail) => asked.push({ id, signal, done, fail })),
			arrived,
			failed,
			capacity,
			parallel: 2,
		});
		return { made, asked, arrived, failed };
	}

	it("loads the most urgent first, a few at a time", async () => {
		const { made, asked, arrived } = cache();
		made.want([id(1), id(2), id(3)], () => 0);
		expect(asked.map((a) => a.id.index)).toEqual([1, 2]);
		asked[0]?.done("one");
		await vi.waitFor(() => expect(asked).toHaveLength(3));
		expect(made.get(id(1))?.data).toBe("one");
		expect(arrived).toHaveBeenCalledTimes(1);
	});
	it("cancels what is no longer wanted and keeps what is", () => {
		const { made, asked } = cache();
		made.want([id(1), id(2)], () => 0);
		made.want([id(2), id(3)], () => 0);
		expect(asked[0]?.signal.aborted).toBe(true);
		expect(asked[1]?.signal.aborted).toBe(false);
		expect(asked.map((a) => a.id.index)).toEqual([1, 2, 3]);
	});
	it("asks again for a tile to which rows were added, and shows the old one meanwhile", async () => {
		const { made, asked } = cache();
		made.want([id(1)], () => 1);
		asked[0]?.done("old");
		await vi.waitFor(() => expect(made.get(id(1))?.data).toBe("old"));
		made.want([id(1)], () => 1);
		expect(asked).toHaveLength(1);
		made.want([id(1)], () => 2);
		expect(asked).toHaveLength(2);
		expect(made.get(id(1))?.data).toBe("old");
	});
	it("forgets what was used the longest ago", async () => {
		const { made, asked } = cache(2);
		for (const n of [1, 2]) {
			made.want([id(n)], () => 0);
			asked.at(-1)?.done(`${n}`);
			await vi.waitFor(() => expect(made.has(id(n))).toBe(true));
		}
		made.get(id(1));
		made.want([id(3)], () => 0);
		asked.at(-1)?.done("3");
		await vi.waitFor(() => expect(made.has(id(3))).toBe(true));
		expect(made.has(id(1))).toBe(true);
		expect(made.has(id(2))).toBe(false);
	});
	it("rests after a failure until it is told to go on", async () => {
		const { made, asked, failed } = cache();
		made.want([id(1), id(2), id(3)], () => 0);
		asked[0]?.fail(new Error("gone"));
		await vi.waitFor(() => expect(failed).toHaveBeenCalledTimes(1));
		made.want([id(2), id(3)], () => 0);
		expect(asked).toHaveLength(2);
		made.resume();
		made.want([id(2), id(3)], () => 0);
		expect(asked).toHaveLength(3);
	});
});
