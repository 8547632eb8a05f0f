import { describe, expect, it } from "vitest";
import { filterText } from "../api/session";
import { formatState, type PageState, parseState, START, tokenOf } from "./url";

const full: PageState = {
	session: "redis <1>&x=y.fathom",
	view: "timeline",
	window: { kind: "range", from: 1234567890123, to: 1234567890223.5 },
	filter: { syscall: ["read", "write"], not_comm: ["a b"], dur: [1000, null], error: "any", path: "/var/\"lib'" },
	rid: 77,
	params: { sort: "-dur_ns" },
};

describe("addresses", () => {
	it("hold the whole state", () => {
		expect(parseState(formatState(full))).toEqual(full);
		expect(parseState(formatState(START))).toEqual(START);
		const last: PageState = { ...START, session: "a", view: "overview", window: { kind: "last", span: 1e10 } };
		expect(parseState(formatState(last))).toEqual(last);
	});
	it("open a session's overview when they name no view", () => {
		expect(parseState("?s=a").view).toBe("overview");
		expect(parseState("").view).toBe("sessions");
	});
	it.each([
		"?s=a&from=5&to=5",
		"?s=a&from=9&to=5",
		"?s=a&from=x&to=5",
		"?s=a&last=-4",
		"?s=a&f=%7B",
		"?s=a&f=[1]",
		"?s=a&f=null",
		'?s=a&f={"pid":["x"],"syscall":"read","dur":[1],"constructor":{"a":1},"error":7}',
		"?s=a&rid=abc",
	])("that are damaged open the session as a whole: %s", (address) => {
		expect(parseState(address)).toEqual({ ...START, session: "a", view: "overview" });
	});
	it("are equal for equal filters", () => {
		expect(filterText({ syscall: ["a"], pid: [1] })).toBe(filterText({ pid: [1], syscall: ["a"] }));
		expect(filterText({})).toBe("");
	});
});

it("finds the token in the fragment", () => {
	expect(tokenOf("#token=abc123")).toBe("abc123");
	expect(tokenOf("#x=1&token=a%2Bb")).toBe("a+b");
	expect(tokenOf("")).toBeNull();
});
