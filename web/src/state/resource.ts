// What a component asks of the server: cancelled when it is no longer wanted, kept on the screen while newer data are
// on their way, asked again when rows have been added or the server is back.

import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { type ApiError, asApiError, isAbort } from "../api/client";
import { firstAnswer } from "./first";
import { client } from "./server";

export interface Resource<T> {
	/** The newest answer; while another is asked for, the one before. */
	data: T | undefined;
	/** The data answer an earlier question than the one that is asked now. */
	stale: boolean;
	loading: boolean;
	error: ApiError | null;
}

export interface Answer<T> {
	key: string | null;
	data: T | undefined;
	error: ApiError | null;
	loading: boolean;
}

/** After an answer that took so long, the next one waits this many times as long, so that a recording is not slowed
 * down; but what has happened is to be seen within a second. */
const REST = 1;
const LONGEST_REST_MS = 500;

/** Asks one question at a time. */
export class Asker<T> {
	private job: { key: string; controller: AbortController; again: boolean } | null = null;
	private timer: ReturnType<typeof setTimeout> | null = null;
	private last: { key: string; restUntil: number } | null = null;

	constructor(
		private readonly load: (signal: AbortSignal) => Promise<T>,
		private readonly update: (change: (before: Answer<T>) => Answer<T>) => void,
		private readonly now: () => number = () => performance.now(),
	) {}

	/** Asks what `key` stands for: at once if that is new, else when the answer before has come and rested. */
	ask(key: string | null): void {
		if (this.job && this.job.key === key) {
			this.job.again = true;
			return;
		}
		this.stop();
		if (key === null) {
			this.last = null;
			this.update(() => ({ key: null, data: undefined, error: null, loading: false }));
			return;
		}
		const rest = this.last?.key === key ? this.last.restUntil - this.now() : 0;
		if (rest > 0) this.timer = setTimeout(() => void this.run(key), rest);
		else void this.run(key);
	}

	stop(): void {
		this.job?.controller.abort();
		this.job = null;
		if (this.timer !== null) clearTimeout(this.timer);
		this.timer = null;
	}

	private async run(key: string): Promise<void> {
		this.timer = null;
		const job = { key, controller: new AbortController(), again: false };
		this.job = job;
		this.update((before) => ({ ...before, loading: true }));
		const begun = this.now();
		let failed = false;
		try {
			const data = await this.load(job.controller.signal);
			if (job.controller.signal.aborted) return;
			this.update(() => ({ key, data, error: null, loading: false }));
		} catch (error) {
			if (job.controller.signal.aborted || isAbort(error)) return;
			failed = true;
			this.update((before) => ({ ...before, key, error: asApiError(error), loading: false }));
		}
		const took = this.now() - begun;
		this.last = { key, restUntil: this.now() + Math.min(LONGEST_REST_MS, took * REST) };
		this.job = null;
		// What failed is asked again when something changes, not in a circle.
		if (job.again && !failed) this.ask(key);
	}
}

/**
 * Loads what `key` stands for; null asks for nothing. A change of `key` cancels the request before it. A change of
 * `revision` (rows were added) asks again when the request before it is done, so that a slow answer is never starved.
 */
export function useResource<T>(
	key: string | null,
	load: (signal: AbortSignal) => Promise<T>,
	revision: number | string = 0,
): Resource<T> {
	const [answer, setAnswer] = useState<Answer<T>>(() => {
		const data = firstAnswer(key) as T | undefined;
		return { key: data === undefined ? null : key, data, error: null, loading: false };
	});
	/** What needs not be asked, as it was there from the beginning. */
	const known = useRef(answer.key);
	const generation = useSyncExternalStore(client.subscribe, client.getGeneration);
	const latest = useRef(load);
	latest.current = load;
	const asker = useRef<Asker<T> | null>(null);

	// biome-ignore lint/correctness/useExhaustiveDependencies: the generation asks again after the server was gone
	useEffect(() => {
		const isKnown = key !== null && known.current === key;
		known.current = null;
		if (isKnown) return;
		asker.current ??= new Asker<T>((signal) => latest.current(signal), setAnswer);
		asker.current.ask(key);
	}, [key, revision, generation]);

	useEffect(
		() => () => {
			asker.current?.stop();
			asker.current = null;
		},
		[],
	);

	const stale = answer.key !== key;
	return {
		data: key === null ? undefined : answer.data,
		stale,
		loading: answer.loading || (key !== null && stale && answer.error === null),
		error: stale ? null : answer.error,
	};
}
