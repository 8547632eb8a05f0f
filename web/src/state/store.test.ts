import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Browser, Store, toggled } from "./store";

function browser(start = "?s=a&view=timeline") {
	const history = [start];
	let back: () => void = () => {};
	const fake: Browser = {
		search: () => history.at(-1) ?? "",
		push: (address) => history.push(address),
		replace: (address) => history.splice(-1, 1, address),
		onBack: (listener) => {
			back = listener;
		},
	};
	return {
		fake,
		history,
		goBack: () => {
			history.pop();
			back();
		},
	};
}

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe("the store", () => {
	it("makes a gesture of many windows one step, which back undoes", () => {
		const { fake, history, goBack } = browser();
		const store = new Store(fake);
		for (let i = 1; i <= 50; i += 1) {
			store.move({ kind: "range", from: i, to: 1000 });
			vi.advanceTimersByTime(16);
		}
		expect(history).toHaveLength(1);
		vi.advanceTimersByTime(1000);
		expect(history).toHaveLength(2);
		expect(store.get().window).toEqual({ kind: "range", from: 50, to: 1000 });
		goBack();
		expect(store.get().window).toEqual({ kind: "all" });
	});
	it("asks about a window when it rests, and now and then in a long gesture", () => {
		const { fake } = browser();
		const store = new Store(fake);
		const rested = new Set<unknown>();
		store.subscribe(() => rested.add(store.getRested()));
		for (let i = 1; i <= 100; i += 1) {
			store.move({ kind: "range", from: i, to: 1000 });
			vi.advanceTimersByTime(16);
		}
		expect(rested.size).toBeLessThan(8);
		vi.advanceTimersByTime(1000);
		expect(store.getRested().window).toEqual({ kind: "range", from: 100, to: 1000 });
		store.go({ window: { kind: "all" } });
		expect(store.getRested().window).toEqual({ kind: "all" });
	});
	it("keeps a gesture that another step interrupts", () => {
		const { fake, history } = browser();
		const store = new Store(fake);
		store.move({ kind: "range", from: 5, to: 10 });
		store.go({ rid: 3 });
		expect(history).toHaveLength(3);
		expect(history[1]).toContain("from=5");
	});
	it("adds nothing to the history when nothing changes", () => {
		const { fake, history } = browser();
		const store = new Store(fake);
		store.go({ view: "timeline" });
		expect(history).toHaveLength(1);
	});
	it("keeps window and filter between views, and what a view keeps for itself not", () => {
		const { fake } = browser("?s=a&view=table&from=1&to=9&sort=-dur_ns");
		const store = new Store(fake);
		store.go({ view: "timeline" });
		expect(store.get().window).toEqual({ kind: "range", from: 1, to: 9 });
		expect(store.get().params).toEqual({});
	});
	it("begins anew in another session", () => {
		const { fake } = browser("?s=a&view=table&from=1&to=9&rid=4");
		const store = new Store(fake);
		store.go({ session: "b", view: "overview" });
		expect(store.get()).toMatchObject({ session: "b", window: { kind: "all" }, rid: null });
	});
	it("tells addresses without going there", () => {
		const { fake, history } = browser();
		const store = new Store(fake);
		expect(store.href({ view: "table", rid: 7 })).toBe("?s=a&view=table&rid=7");
		expect(history).toHaveLength(1);
	});
});

describe("filters", () => {
	it("take values in and out, and never ask for what they exclude", () => {
		const a = toggled({}, "syscall", "read");
		expect(a).toEqual({ syscall: ["read"] });
		expect(toggled(a, "syscall", "write")).toEqual({ syscall: ["read", "write"] });
		expect(toggled(a, "syscall", "read")).toEqual({});
		expect(toggled(a, "syscall", "read", true)).toEqual({ not_syscall: ["read"] });
	});
});
