// Rows of the event table, a page at a time, as they come into sight.

import type { Columns } from "../../api/arrow";

export const PAGE_ROWS = 256;

export interface Page {
	columns: Columns;
	first: number;
}

/** Pages that were loaded, for one order, filter and window. */
export class Pages {
	private readonly pages = new Map<number, Page>();
	private readonly jobs = new Map<number, AbortController>();

	constructor(
		private readonly load: (first: number, limit: number, signal: AbortSignal) => Promise<Columns>,
		private readonly arrived: (page: Page) => void,
		private readonly failed: (error: unknown) => void,
		private readonly capacity = 64,
	) {}

	/** The page of a row, if it is there, and the row's place in it. */
	row(index: number): { page: Page; place: number } | null {
		const number = Math.floor(index / PAGE_ROWS);
		const page = this.pages.get(number);
		if (!page) return null;
		const place = index - page.first;
		return place < page.columns.rows ? { page, place } : null;
	}

	/** Loads what is missing of the rows in sight, and no more of what no longer is. */
	want(first: number, end: number): void {
		const from = Math.floor(first / PAGE_ROWS);
		const to = Math.floor(Math.max(first, end - 1) / PAGE_ROWS);
		for (const [number, job] of this.jobs) {
			if (number < from || number > to) {
				job.abort();
				this.jobs.delete(number);
			}
		}
		for (let number = from; number <= to; number += 1) {
			const page = this.pages.get(number);
			if (page) {
				this.pages.delete(number);
				this.pages.set(number, page);
			} else if (!this.jobs.has(number)) void this.fetch(number);
		}
	}

	clear(): void {
		for (const job of this.jobs.values()) job.abort();
		this.jobs.clear();
		this.pages.clear();
	}

	private async fetch(number: number): Promise<void> {
		const job = new AbortController();
		this.jobs.set(number, job);
		try {
			const columns = await this.load(number * PAGE_ROWS, PAGE_ROWS, job.signal);
			if (job.signal.aborted) return;
			const page = { columns, first: number * PAGE_ROWS };
			this.pages.set(number, page);
			for (const oldest of this.pages.keys()) {
				if (this.pages.size <= this.capacity) break;
				this.pages.delete(oldest);
			}
			this.jobs.delete(number);
			this.arrived(page);
		} catch (error) {
			if (job.signal.aborted) return;
			this.jobs.delete(number);
			this.failed(error);
		}
	}
}
