import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Quiet } from "./quiet";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function question() {
	let done: () => void = () => {};
	const answer = new Promise<void>((resolve) => {
		done = resolve;
	});
	return { answer, done };
}

describe("a question that can wait", () => {
	it("is asked after the others are answered, and after those that they lead to", async () => {
		const quiet = new Quiet();
		const [first, second] = [question(), question()];
		const asked: string[] = [];
		void quiet.during(first.answer);
		void quiet.passed(new AbortController().signal).then(() => asked.push("later"));
		await vi.advanceTimersByTimeAsync(1000);
		expect(asked).toEqual([]);
		first.done();
		await vi.advanceTimersByTimeAsync(1);
		void quiet.during(second.answer);
		await vi.advanceTimersByTimeAsync(1000);
		expect(asked).toEqual([]);
		second.done();
		await vi.advanceTimersByTimeAsync(100);
		expect(asked).toEqual(["later"]);
	});
	it("is asked although others never end, and waits no longer than it is wanted", async () => {
		const quiet = new Quiet();
		const asked: string[] = [];
		const left = new AbortController();
		void quiet.during(question().answer);
		void quiet.passed(new AbortController().signal).then(() => asked.push("kept"));
		void quiet.passed(left.signal).then(() => asked.push("left"));
		await vi.advanceTimersByTimeAsync(1);
		left.abort();
		await vi.advanceTimersByTimeAsync(1);
		expect(asked).toEqual(["left"]);
		await vi.advanceTimersByTimeAsync(60_000);
		expect(asked).toEqual(["left", "kept"]);
		await quiet.passed(left.signal);
	});
	it("is asked after one that failed", async () => {
		const quiet = new Quiet();
		const asked: string[] = [];
		await expect(quiet.during(Promise.reject(new Error("no")))).rejects.toThrow("no");
		void quiet.passed(new AbortController().signal).then(() => asked.push("later"));
		await vi.advanceTimersByTimeAsync(100);
		expect(asked).toEqual(["later"]);
	});
});
