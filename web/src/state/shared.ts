// One request for a question that several parts of the page ask.

interface Entry {
	answer: Promise<unknown>;
	controller: AbortController;
	/** Askers that still want it. */
	waiting: number;
	done: boolean;
}

/** Answers by their questions: one request while it is under way, and the latest answers after that. */
export class Shared {
	private readonly entries = new Map<string, Entry>();

	constructor(private readonly most: number) {}

	/** The answer to `key`, asked with `ask` unless it is there or on its way. */
	async load<T>(key: string, signal: AbortSignal, ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
		const known = this.entries.get(key);
		const entry = known ?? this.begin(key, ask);
		if (known) {
			// The latest last.
			this.entries.delete(key);
			this.entries.set(key, known);
		}
		if (entry.done) return entry.answer as Promise<T>;
		entry.waiting += 1;
		const leave = () => {
			entry.waiting -= 1;
			// Nobody wants it any more.
			if (entry.waiting > 0 || entry.done) return;
			if (this.entries.get(key) === entry) this.entries.delete(key);
			entry.controller.abort();
		};
		if (signal.aborted) leave();
		else signal.addEventListener("abort", leave, { once: true });
		try {
			return (await entry.answer) as T;
		} finally {
			signal.removeEventListener("abort", leave);
		}
	}

	private begin<T>(key: string, ask: (signal: AbortSignal) => Promise<T>): Entry {
		const controller = new AbortController();
		const entry: Entry = { answer: ask(controller.signal), controller, waiting: 0, done: false };
		this.entries.set(key, entry);
		entry.answer.then(
			() => {
				entry.done = true;
				for (const oldest of this.entries.keys()) {
					if (this.entries.size <= this.most) break;
					this.entries.delete(oldest);
				}
			},
			() => {
				// A failure is asked again.
				if (this.entries.get(key) === entry) this.entries.delete(key);
			},
		);
		return entry;
	}
}
