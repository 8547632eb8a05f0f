// When questions that can wait are asked: once the plots and lists of a view have their answers.

/** So long nothing is asked before it counts as quiet: an answer may lead to the next question. */
const PAUSE_MS = 25;
/** A question that can wait is asked after so long in any case. */
const LONGEST_MS = 3000;

/** Counts the questions that a view waits for. */
export class Quiet {
	private busy = 0;
	private readonly waiting = new Set<() => void>();
	private pause: ReturnType<typeof setTimeout> | null = null;

	/** The answer to a question that a view waits for. */
	async during<T>(answer: Promise<T>): Promise<T> {
		this.busy += 1;
		try {
			return await answer;
		} finally {
			this.busy -= 1;
			this.look();
		}
	}

	/** Is over when no view waits for an answer, after some time in any case, and when `signal` says so. */
	passed(signal: AbortSignal): Promise<void> {
		if (signal.aborted) return Promise.resolve();
		return new Promise((resolve) => {
			const go = () => {
				this.waiting.delete(go);
				clearTimeout(timer);
				signal.removeEventListener("abort", go);
				resolve();
			};
			const timer = setTimeout(go, LONGEST_MS);
			signal.addEventListener("abort", go);
			this.waiting.add(go);
			this.look();
		});
	}

	private look(): void {
		if (this.pause !== null) clearTimeout(this.pause);
		this.pause = null;
		if (this.busy > 0 || this.waiting.size === 0) return;
		this.pause = setTimeout(() => {
			this.pause = null;
			if (this.busy > 0) return;
			for (const go of [...this.waiting]) go();
		}, PAUSE_MS);
	}
}

export const quiet = new Quiet();
