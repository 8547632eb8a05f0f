// Requests to the server: token, cancellation, errors, and a server that goes away and returns.

import { questionKey } from "./archive";

/** An error as every part of the page shows it: what happened, to what, what to do next. */
export class ApiError extends Error {
	constructor(
		/** HTTP status; 0 when no answer came. */
		readonly status: number,
		readonly what: string,
		readonly subject: string,
		readonly next: string,
	) {
		super(subject ? `${what}: ${subject}` : what);
		this.name = "ApiError";
	}
}

export type Connection = "up" | "down" | "refused";

/** Where the token is kept: all tabs of one server share it. */
export const TOKEN = "fathom.token";
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 5000;

type Listener = () => void;

/** Questions that are remembered; the server takes a thousand. */
const REMEMBERED = 900;

/** A question to the server: a path below `/api`, and what was sent. */
export interface Question {
	path: string;
	body?: string;
}

/** One server, with the token that it wants. */
export class Client {
	private token: string | null;
	private connection: Connection = "up";
	/** What the server said to do when it refused the token. */
	private advice = "";
	/** Whether the server has taken a token of this page. */
	private accepted = false;
	/** Grows whenever the server is back, or the token was changed: what failed is to be asked again. */
	private generation = 0;
	private retry: ReturnType<typeof setTimeout> | null = null;
	private readonly listeners = new Set<Listener>();
	/** What was answered, the latest last: what a saved page is made of. */
	private readonly answered = new Map<string, Question>();

	constructor(
		private readonly storage: Pick<Storage, "getItem" | "setItem"> | null,
		private readonly send: typeof fetch = (input, init) => fetch(input, init),
	) {
		this.token = read(storage);
	}

	subscribe = (listener: Listener): (() => void) => {
		this.listeners.add(listener);
		return () => this.listeners.delete(listener);
	};

	/** The questions that this page had answers to, the latest first. */
	getAnswered = (): Question[] => [...this.answered.values()].reverse();

	getConnection = (): Connection => this.connection;

	/** What to do about a refused token, in the server's words. */
	getAdvice = (): string => this.advice;

	/** Whether this page was shown something before: refused after that, the server was started anew. */
	wasAccepted = (): boolean => this.accepted;

	getGeneration = (): number => this.generation;

	setToken(token: string): void {
		this.token = token;
		try {
			this.storage?.setItem(TOKEN, token);
		} catch {
			// A browser that keeps nothing: the token lasts as long as the page.
		}
		this.connection = "up";
		this.again();
	}

	/** Sends a request; the answer is one of success. Throws `ApiError`, or an `AbortError` when it was cancelled. */
	async request(path: string, init: RequestInit = {}): Promise<Response> {
		const headers = new Headers(init.headers);
		const token = this.token;
		if (token !== null) headers.set("Authorization", `Bearer ${token}`);
		let answer: Response;
		// A reverse proxy knows who has signed in by its cookies; fathom itself has none.
		try {
			answer = await this.send(`/api${path}`, { ...init, headers, credentials: "same-origin", cache: "no-store" });
		} catch (error) {
			throw this.lost(error, path);
		}
		if (answer.ok) {
			this.found();
			// What changes something is no question; who asks here is not for the readers of a saved page.
			if ((init.method !== "POST" || path.endsWith("/sql")) && path !== "/access") this.remember(path, init.body);
			return answer;
		}
		const problem = await explain(answer, path);
		if (problem.status === 401 && this.takeNewer(token)) return this.request(path, init);
		if (problem.status === 401 && this.connection !== "refused") {
			this.connection = "refused";
			this.advice = problem.next;
			this.tell();
		}
		throw problem;
	}

	private remember(path: string, body: unknown): void {
		const question: Question = typeof body === "string" ? { path, body } : { path };
		const key = questionKey(path, question.body);
		this.answered.delete(key);
		this.answered.set(key, question);
		for (const oldest of this.answered.keys()) {
			if (this.answered.size <= REMEMBERED) break;
			this.answered.delete(oldest);
		}
	}

	async json<T>(path: string, signal?: AbortSignal): Promise<T> {
		const answer = await this.request(path, signal ? { signal } : {});
		try {
			return (await answer.json()) as T;
		} catch (error) {
			throw this.lost(error, path);
		}
	}

	async bytes(path: string, init: RequestInit = {}): Promise<Uint8Array> {
		const answer = await this.request(path, init);
		try {
			return new Uint8Array(await answer.arrayBuffer());
		} catch (error) {
			throw this.lost(error, path);
		}
	}

	/** What a failed transfer means; notes that the server is gone. Cancellation passes through. */
	lost(error: unknown, path: string): unknown {
		if (isAbort(error)) return error;
		if (this.connection === "up") {
			this.connection = "down";
			this.tell();
			this.lookAgain(FIRST_RETRY_MS);
		}
		return new ApiError(
			0,
			"the server does not answer",
			path,
			"the page asks again by itself; is `fathom ui` still running?",
		);
	}

	/** Another tab may have got the token of a server that was started anew. */
	private takeNewer(refused: string | null): boolean {
		const stored = read(this.storage);
		const newer = this.token !== refused ? this.token : stored;
		if (newer === null || newer === refused) return false;
		this.token = newer;
		return true;
	}

	private found(): void {
		this.accepted = true;
		if (this.connection === "up") return;
		const wasDown = this.connection;
		this.connection = "up";
		if (this.retry !== null) clearTimeout(this.retry);
		this.retry = null;
		if (wasDown === "down") this.again();
		else this.tell();
	}

	private again(): void {
		this.generation += 1;
		this.tell();
	}

	/** Asks for the list of sessions until an answer comes. */
	private lookAgain(delay: number): void {
		this.retry = setTimeout(async () => {
			this.retry = null;
			try {
				await this.request("/sessions");
			} catch {
				if (this.connection === "down") this.lookAgain(Math.min(delay * 1.6, LAST_RETRY_MS));
			}
		}, delay);
	}

	private tell(): void {
		for (const listener of this.listeners) listener();
	}
}

export function isAbort(error: unknown): boolean {
	return error instanceof DOMException && error.name === "AbortError";
}

function read(storage: Pick<Storage, "getItem"> | null): string | null {
	try {
		return storage?.getItem(TOKEN) ?? null;
	} catch {
		return null;
	}
}

async function explain(answer: Response, path: string): Promise<ApiError> {
	const text = (value: unknown, otherwise: string) => (typeof value === "string" && value !== "" ? value : otherwise);
	let told: Record<string, unknown> = {};
	try {
		const body: unknown = await answer.json();
		const error = (body as { error?: unknown } | null)?.error;
		if (typeof error === "object" && error !== null) told = error as Record<string, unknown>;
	} catch {
		// Not an answer of fathom's; the status must do.
	}
	return new ApiError(
		answer.status,
		text(told["what"], `the server answered ${answer.status} ${answer.statusText}`.trim()),
		text(told["subject"], told["what"] === undefined ? path : ""),
		text(told["next"], ""),
	);
}

/** Any thrown value as something to show. */
export function asApiError(error: unknown): ApiError {
	if (error instanceof ApiError) return error;
	return new ApiError(
		0,
		"this part of the page failed",
		String(error),
		"reload the page; if it happens again, report it",
	);
}
