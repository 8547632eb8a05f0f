import { expect, it, vi } from "vitest";
import { Shared } from "./shared";

const never = () => new AbortController().signal;

it("asks once for what two ask at a time, and once more when it was pushed out", async () => {
	const shared = new Shared(2);
	const ask = vi.fn(async () => "answer");
	expect(await Promise.all([shared.load("a", never(), ask), shared.load("a", never(), ask)])).toEqual([
		"answer",
		"answer",
	]);
	await shared.load("a", never(), ask);
	expect(ask).toHaveBeenCalledTimes(1);
	await shared.load("b", never(), ask);
	await shared.load("c", never(), ask);
	await shared.load("a", never(), ask);
	expect(ask).toHaveBeenCalledTimes(4);
});

it("cancels a request only when all have left, and asks again after a failure", async () => {
	const shared = new Shared(2);
	const [first, second] = [new AbortController(), new AbortController()];
	const asked: AbortSignal[] = [];
	const ask = (signal: AbortSignal) => {
		asked.push(signal);
		return new Promise<string>((_, fail) => signal.addEventListener("abort", () => fail(new Error("cancelled"))));
	};
	const one = shared.load("a", first.signal, ask);
	const two = shared.load("a", second.signal, ask);
	first.abort();
	expect(asked[0]?.aborted).toBe(false);
	second.abort();
	expect(asked[0]?.aborted).toBe(true);
	await expect(one).rejects.toThrow("cancelled");
	await expect(two).rejects.toThrow("cancelled");
	expect(await shared.load("a", never(), async () => "again")).toBe("again");
	expect(asked.length).toBe(1);
});
