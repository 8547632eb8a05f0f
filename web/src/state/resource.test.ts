import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "../api/client";
import { type Answer, Asker } from "./resource";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function asker() {
	const asked: { signal: AbortSignal; done: (value: string) => void; fail: (error: unknown) => void }[] = [];
	let answer: Answer<string> = { key: null, data: undefined, error: null, loading: false };
	const made = new Asker<string>(
		(signal) => new Promise((done, fail) => asked.push({ signal, done, fail })),
		(change) => {
			answer = change(answer);
		},
		() => Date.now(),
	);
	return { made, asked, answer: () => answer };
}

const flush = () => vi.advanceTimersByTimeAsync(0);

describe("a question", () => {
	it("keeps the old answer until the new one is there, and cancels what was asked before", async () => {
		const { made, asked, answer } = asker();
		made.ask("a");
		asked[0]?.done("A");
		await flush();
		made.ask("b");
		made.ask("c");
		expect(asked[1]?.signal.aborted).toBe(true);
		expect(answer()).toMatchObject({ key: "a", data: "A", loading: true });
		asked[1]?.done("late");
		asked[2]?.done("C");
		await flush();
		expect(answer()).toMatchObject({ key: "c", data: "C", loading: false });
	});
	it("that is asked again while it is answered is not starved, and rests after a slow answer", async () => {
		const { made, asked } = asker();
		made.ask("a");
		for (let i = 0; i < 5; i += 1) {
			await vi.advanceTimersByTimeAsync(100);
			made.ask("a");
		}
		expect(asked).toHaveLength(1);
		expect(asked[0]?.signal.aborted).toBe(false);
		asked[0]?.done("A");
		await vi.advanceTimersByTimeAsync(400);
		expect(asked).toHaveLength(1);
		await vi.advanceTimersByTimeAsync(200);
		expect(asked).toHaveLength(2);
	});
	it("that fails keeps its data and says why, once", async () => {
		const { made, asked, answer } = asker();
		made.ask("a");
		asked[0]?.done("A");
		await flush();
		made.ask("a");
		await vi.advanceTimersByTimeAsync(10);
		made.ask("a");
		asked[1]?.fail(new ApiError(408, "too slow", "a", "ask for less"));
		await vi.advanceTimersByTimeAsync(5000);
		expect(asked).toHaveLength(2);
		expect(answer()).toMatchObject({ data: "A", loading: false });
		expect(answer().error?.status).toBe(408);
	});
	it("that nobody asks any more is cancelled", () => {
		const { made, asked, answer } = asker();
		made.ask("a");
		made.ask(null);
		expect(asked[0]?.signal.aborted).toBe(true);
		expect(answer()).toMatchObject({ key: null, data: undefined, loading: false });
	});
});
