import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Quiet, Turns } from "./quiet";

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

describe("a question of a list", () => {
	it("is asked after the plots are answered, and before what can wait", async () => {
		const turns = new Turns();
		const [plot, list] = [question(), question()];
		const asked: string[] = [];
		const ask = (name: string, answer: Promise<void>) => () => {
			asked.push(name);
			return answer;
		};
		const { signal } = new AbortController();
		void turns.take("later", ask("later", Promise.resolve()), signal);
		void turns.take("lists", ask("list", list.answer), signal);
		void turns.take("plots", ask("plot", plot.answer), signal);
		await vi.advanceTimersByTimeAsync(500);
		expect(asked).toEqual(["plot"]);
		expect(turns.unanswered).toBe(3);
		plot.done();
		await vi.advanceTimersByTimeAsync(500);
		expect(asked).toEqual(["plot", "list"]);
		list.done();
		await vi.advanceTimersByTimeAsync(100);
		expect(asked).toEqual(["plot", "list", "later"]);
		expect(turns.unanswered).toBe(0);
	});
	it("is asked after a second although a plot takes longer", async () => {
		const turns = new Turns();
		const asked: string[] = [];
		const { signal } = new AbortController();
		void turns.take("plots", () => question().answer, signal);
		void turns.take("lists", async () => asked.push("list"), signal);
		await vi.advanceTimersByTimeAsync(1100);
		expect(asked).toEqual(["list"]);
	});
});
