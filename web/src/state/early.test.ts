import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { arrived, sendOrTake } from "./early";

const holder = globalThis as { fathomEarly?: unknown };
const NEW = { headers: { Authorization: "Bearer a" } };

let sent: string[] = [];
const take = sendOrTake(async (input) => {
	sent.push(String(input));
	return new Response("new");
});

/** Answers that were asked for early, with the token `a`. */
function early(answers: Record<string, Promise<Response>>): void {
	holder.fathomEarly = {
		authorization: "Bearer a",
		asked: performance.now(),
		answers: new Map(Object.entries(answers)),
	};
}

const text = async (answer: Promise<Response>) => (await answer).text();

beforeEach(() => {
	vi.useFakeTimers();
	sent = [];
});
afterEach(() => {
	vi.useRealTimers();
	delete holder.fathomEarly;
});

describe("an early answer", () => {
	it("is taken once", async () => {
		early({ "/api/x": Promise.resolve(new Response("early")) });
		expect(await text(take("/api/x", NEW))).toBe("early");
		expect(await text(take("/api/x", NEW))).toBe("new");
		expect(await text(take("/api/y", NEW))).toBe("new");
		expect(sent).toEqual(["/api/x", "/api/y"]);
	});
	it("is not taken with another token, nor when it is old, nor when it failed", async () => {
		const made = () => early({ "/api/x": Promise.resolve(new Response("early")) });
		made();
		expect(await text(take("/api/x", { headers: { Authorization: "Bearer b" } }))).toBe("new");
		made();
		await vi.advanceTimersByTimeAsync(6000);
		expect(await text(take("/api/x", NEW))).toBe("new");
		early({
			"/api/x": Promise.reject(new TypeError("gone")),
			"/api/y": Promise.resolve(new Response("", { status: 401 })),
		});
		expect(await text(take("/api/x", NEW))).toBe("new");
		expect(await text(take("/api/y", NEW))).toBe("new");
	});
	it("can be given up", async () => {
		early({ "/api/x": new Promise(() => {}) });
		const left = new AbortController();
		const answer = take("/api/x", { ...NEW, signal: left.signal });
		left.abort();
		await expect(answer).rejects.toThrow(/abort/i);
		expect(sent).toEqual([]);
	});
	it("is waited for as long as was said", async () => {
		early({
			"/api/sessions/a": Promise.resolve(new Response("early")),
			"/api/sessions/a/tiles": new Promise(() => {}),
			"/api/access": Promise.resolve(new Response("early")),
		});
		const there = arrived(100);
		await vi.advanceTimersByTimeAsync(100);
		expect(await there).toEqual(["/api/sessions/a"]);
		// It can still be taken.
		expect(await text(take("/api/sessions/a", NEW))).toBe("early");
	});
	it("is not waited for when nothing was asked", async () => {
		expect(await arrived(100)).toEqual([]);
	});
});
