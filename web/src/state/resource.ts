// What a component asks of the server: cancelled when it is no longer wanted, kept on the screen while newer data are
// on their way, asked again when rows have been added or the server is back.

import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { type ApiError, asApiError, isAbort } from "../api/client";
import { client } from "./server";

export interface Resource<T> {
	/** The newest answer; while another is asked for, the one before. */
	data: T | undefined;
	/** The data answer an earlier question than the one that is asked now. */
	stale: boolean;
	loading: boolean;
	error: ApiError | null;
}

interface Answer<T> {
	key: string | null;
	data: T | undefined;
	error: ApiError | null;
	loading: boolean;
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
	const [answer, setAnswer] = useState<Answer<T>>({ key: null, data: undefined, error: null, loading: false });
	const generation = useSyncExternalStore(client.subscribe, client.getGeneration);
	const latest = useRef(load);
	latest.current = load;
	const running = useRef<{ key: string; again: boolean } | null>(null);
	const controller = useRef<AbortController | null>(null);

	// biome-ignore lint/correctness/useExhaustiveDependencies: the generation asks again after the server was gone
	useEffect(() => {
		if (key === null) {
			controller.current?.abort();
			running.current = null;
			setAnswer({ key: null, data: undefined, error: null, loading: false });
			return;
		}
		if (running.current?.key === key) {
			running.current.again = true;
			return;
		}
		controller.current?.abort();
		const run = async () => {
			const mine = new AbortController();
			const job = { key, again: false };
			controller.current = mine;
			running.current = job;
			setAnswer((before) => ({ ...before, loading: true }));
			try {
				const data = await latest.current(mine.signal);
				if (mine.signal.aborted) return;
				setAnswer({ key, data, error: null, loading: false });
			} catch (error) {
				if (mine.signal.aborted || isAbort(error)) return;
				setAnswer((before) => ({ ...before, key, error: asApiError(error), loading: false }));
				job.again = false;
			}
			if (running.current !== job) return;
			running.current = null;
			if (job.again) void run();
		};
		void run();
	}, [key, revision, generation]);

	useEffect(
		() => () => {
			controller.current?.abort();
			controller.current = null;
			running.current = null;
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
