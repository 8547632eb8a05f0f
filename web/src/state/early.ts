// Questions that `early.js` has asked before the page's scripts were there.

interface Early {
	/** The header that was sent. */
	authorization: string;
	/** When, as `performance.now()` has it. */
	asked: number;
	/** Answers by address, each with all its bytes. */
	answers: Map<string, Promise<Response>>;
}

/** What is older is asked again: a recording goes on. */
const OLDEST_MS = 5000;

function early(): Early | undefined {
	return (globalThis as { fathomEarly?: Early }).fathomEarly;
}

/** Whether the sums over time were asked for early. */
export function askedForSums(): boolean {
	return [...(early()?.answers.keys() ?? [])].some((address) => address.includes("/tiles?"));
}

/** The addresses of the session whose answers came within so many milliseconds. */
export async function arrived(ms: number): Promise<string[]> {
	const answers = [...(early()?.answers ?? [])].filter(([address]) => address.startsWith("/api/sessions/"));
	if (answers.length === 0) return [];
	const there: string[] = [];
	const all = answers.map(([address, answer]) =>
		answer.then(
			() => there.push(address),
			() => {},
		),
	);
	await Promise.race([Promise.all(all), new Promise((done) => setTimeout(done, ms))]);
	return [...there];
}

/** Sends requests, except those that were sent before. Each early answer is for one of them. */
export function sendOrTake(send: typeof fetch): typeof fetch {
	return (input, init) => {
		const made = early();
		const answer = typeof input === "string" ? made?.answers.get(input) : undefined;
		if (!made || !answer) return send(input, init);
		made.answers.delete(input as string);
		const isOld = performance.now() - made.asked > OLDEST_MS;
		if (isOld || new Headers(init?.headers).get("Authorization") !== made.authorization) return send(input, init);
		const again = () => send(input, init);
		return unless(
			init?.signal ?? null,
			answer.then((sent) => (sent.ok && !sent.redirected ? sent : again()), again),
		);
	};
}

/** What a promise comes to, unless it is cancelled before. */
function unless<T>(signal: AbortSignal | null, answer: Promise<T>): Promise<T> {
	if (!signal) return answer;
	return new Promise((resolve, reject) => {
		const leave = () => reject(signal.reason);
		if (signal.aborted) return leave();
		signal.addEventListener("abort", leave, { once: true });
		answer.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
	});
}
