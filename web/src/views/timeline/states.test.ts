import { expect, it } from "vitest";
import type { ThreadRow } from "../../api/types";
import type { Lane } from "./lanes";
import { decodeStates, keyOf, type StateColumns, shareAt, sharesOf, wakesOf } from "./states";

const NAN = Number.NaN;

/** Thread 1 waits for thread 2, which waits for a device; of thread 2 the begin was not seen. */
function answer(mode = "periods"): StateColumns {
	const numbers: Record<string, number[]> = {
		lane: [1, 1, 1, 2, 2, 2],
		t: [0, 10, 50, 0, 20, 45],
		dur: [10, 40, 50, 20, 25, 55],
		waker_tid: [NAN, 2, NAN, NAN, NAN, NAN],
		woken: [NAN, 50, NAN, NAN, 45, NAN],
	};
	const texts: Record<string, string[]> = {
		state: ["running", "blocked", "running", "unknown", "blocked", "running"],
		reason: ["", "futex", "", "unseen_start", "disk", ""],
	};
	return {
		rows: 6,
		f64: (name) => Float64Array.from(numbers[name] ?? new Array<number>(6).fill(NAN)),
		codes: (name) => {
			const values = [...new Set(texts[name] ?? [])];
			return { codes: Int32Array.from({ length: 6 }, (_, i) => values.indexOf(texts[name]?.[i] ?? "-")), values };
		},
		metaNumber: (name) => ({ from: 0, to: 100, bucket_ns: 0, lost: 0 })[name] ?? null,
		metaText: (name) => (name === "mode" ? mode : null),
	};
}

const lane = (tid: number) => ({ members: [{ tid } as ThreadRow] }) as unknown as Lane;

it("has the periods of each thread, and their shares add up", () => {
	const states = decodeStates(answer());
	expect([...states.threads]).toEqual([
		[1, [0, 3]],
		[2, [3, 6]],
	]);
	expect(keyOf(states, 1)).toBe("blocked: futex");
	expect(shareAt(states, 1, 49)?.row).toBe(1);
	expect(shareAt(states, 1, 50)?.row).toBe(2);
	expect(shareAt(states, 2, 5)?.parts[0]?.[0]).toBe("unknown");
	expect(shareAt(states, 3, 5)).toBe(null);
	expect(sharesOf(states).reduce((a, [, share]) => a + share, 0)).toBeCloseTo(1);
	expect(sharesOf(states)[0]).toEqual(["running", 115 / 200]);
});

it("has an arrow for a wake-up by a thread with a lane", () => {
	const states = decodeStates(answer());
	const span = { from: 0, to: 100 };
	expect(wakesOf(states, [lane(1), lane(2)], span)).toEqual([{ row: 1, t: 50, from: 1, to: 0 }]);
	expect(wakesOf(states, [lane(1)], span)).toEqual([]);
	expect(wakesOf(states, [lane(1), lane(2)], { from: 0, to: 40 })).toEqual([]);
	expect(wakesOf(decodeStates(answer("sums")), [lane(1), lane(2)], span)).toEqual([]);
});
