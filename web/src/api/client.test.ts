import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError, Client } from "./client";

const storage = () => {
	const kept = new Map<string, string>();
	return { getItem: (k: string) => kept.get(k) ?? null, setItem: (k: string, v: string) => void kept.set(k, v) };
};

const answer = (status: number, body: unknown) => new Response(JSON.stringify(body), { status });

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe("the client", () => {
	it("sends the token in the header and nowhere else", async () => {
		const send = vi.fn(async (_url: RequestInfo | URL, _init?: RequestInit) => answer(200, []));
		const kept = storage();
		const client = new Client(kept, send);
		client.setToken("secret");
		await client.json("/sessions");
		const [url, init] = send.mock.calls[0] ?? [];
		expect(url).toBe("/api/sessions");
		expect(new Headers(init?.headers).get("Authorization")).toBe("Bearer secret");
		expect(init?.credentials).toBe("same-origin");
		expect(new Client(kept, send).getConnection()).toBe("up");
	});

	it("tells what happened, to what and what next", async () => {
		const client = new Client(null, async () =>
			answer(404, { error: { what: "no such session", subject: "x", next: "list them" } }),
		);
		const error = await client.json("/sessions/x").catch((e: unknown) => e);
		expect(error).toBeInstanceOf(ApiError);
		expect(error).toMatchObject({ status: 404, what: "no such session", subject: "x", next: "list them" });
	});

	it("does with answers that are not fathom's", async () => {
		const client = new Client(null, async () => new Response("<html>", { status: 502, statusText: "Bad Gateway" }));
		await expect(client.json("/sessions")).rejects.toMatchObject({ status: 502, subject: "/sessions" });
	});

	it("notes a refused token, and asks again with another", async () => {
		let status = 401;
		const client = new Client(null, async () => answer(status, { error: { next: "sign in at the proxy" } }));
		await client.json("/sessions").catch(() => {});
		expect(client.getConnection()).toBe("refused");
		expect(client.getAdvice()).toBe("sign in at the proxy");
		const before = client.getGeneration();
		status = 200;
		client.setToken("right");
		expect(client.getConnection()).toBe("up");
		expect(client.getGeneration()).toBe(before + 1);
	});

	it("takes the token that another tab was given meanwhile", async () => {
		const kept = storage();
		const tokens: (string | null)[] = [];
		let right = "old";
		const client = new Client(kept, async (_url, init) => {
			const sent = new Headers(init?.headers).get("Authorization");
			tokens.push(sent);
			return answer(sent === `Bearer ${right}` ? 200 : 401, {});
		});
		client.setToken("old");
		expect(client.wasAccepted()).toBe(false);
		await client.json("/sessions");
		expect(client.wasAccepted()).toBe(true);
		right = "new";
		await expect(client.json("/sessions")).rejects.toMatchObject({ status: 401 });
		expect(client.getConnection()).toBe("refused");
		kept.setItem("fathom.token", "new");
		await client.json("/sessions");
		expect(client.getConnection()).toBe("up");
		expect(tokens).toEqual(["Bearer old", "Bearer old", "Bearer old", "Bearer new"]);
	});

	it("remembers questions for a saved page, and not who asked", async () => {
		const client = new Client(null, async () => answer(200, {}));
		await client.json("/access");
		await client.json("/sessions");
		await client.request("/sessions/a/save", { method: "POST" });
		expect(client.getAnswered()).toEqual([{ path: "/sessions" }]);
	});

	it("looks for a server that went away until it is back, and has what failed asked again", async () => {
		let there = false;
		const send = vi.fn(async () => {
			if (!there) throw new TypeError("Failed to fetch");
			return answer(200, []);
		});
		const client = new Client(null, send);
		await expect(client.json("/sessions/a")).rejects.toMatchObject({ status: 0 });
		expect(client.getConnection()).toBe("down");
		const before = client.getGeneration();
		await vi.advanceTimersByTimeAsync(20_000);
		expect(send.mock.calls.length).toBeGreaterThan(3);
		expect(send.mock.calls.length).toBeLessThan(15);
		there = true;
		await vi.advanceTimersByTimeAsync(6000);
		expect(client.getConnection()).toBe("up");
		expect(client.getGeneration()).toBe(before + 1);
		const calls = send.mock.calls.length;
		await vi.advanceTimersByTimeAsync(60_000);
		expect(send.mock.calls.length).toBe(calls);
	});

	it("takes a cancelled request for what it is", async () => {
		const client = new Client(null, async () => {
			throw new DOMException("cancelled", "AbortError");
		});
		await expect(client.json("/sessions")).rejects.toHaveProperty("name", "AbortError");
		expect(client.getConnection()).toBe("up");
	});
});
