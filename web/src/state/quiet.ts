// When questions are asked: those of plots at once, those of lists when the plots are there, and what takes long after both.

/** So long nothing is asked before it counts as quiet: an answer may lead to the next question. */
const PAUSE_MS = 25;
/** A question that can wait is asked after so long in any case. */
const LONGEST_MS = 3000;
/** The same of a question of a list, which waits for plots. */
const LONGEST_FOR_PLOTS_MS = 1000;

/** Counts the questions that a view waits for. */
export class Quiet {
	private busy = 0;
	private readonly waiting = new Set<() => void>();
	private pause: ReturnType<typeof setTimeout> | null = null;

	constructor(private readonly longest = LONGEST_MS) {}

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
			const timer = setTimeout(go, this.longest);
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

/** What a question is for, which says when it is asked. */
export type Turn = "plots" | "lists" | "later";

export class Turns {
	private readonly plots = new Quiet(LONGEST_FOR_PLOTS_MS);
	/** Plots and lists together. */
	readonly shown = new Quiet();
	private open = 0;

	/** Questions without an answer, also those that are still to be asked. */
	get unanswered(): number {
		return this.open;
	}

	/** Asks when it is the question's turn. */
	async take<T>(turn: Turn, ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
		this.open += 1;
		try {
			return await this.inTurn(turn, ask, signal);
		} finally {
			this.open -= 1;
		}
	}

	private async inTurn<T>(turn: Turn, ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
		switch (turn) {
			case "plots":
				return this.shown.during(this.plots.during(ask()));
			case "lists":
				return this.shown.during(this.plots.passed(signal).then(ask));
			case "later":
				await this.shown.passed(signal);
				return ask();
		}
	}
}

export const turns = new Turns();
