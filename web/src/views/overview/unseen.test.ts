import { expect, test } from "vitest";
import type { Diagnosis, NotObservable } from "../../api/diagnosis";
import { byReason, unseenText } from "./unseen";

const of = (rule: string, reason: string): NotObservable => ({ rule, reason });
const spans = [of("slow-request", "no spans"), of("queries-in-a-loop", "no spans")];
const content = of("content-mismatch", "no content");

test("rules with the same reason are together", () => {
	expect(byReason([content, ...spans])).toEqual([
		{ rules: ["content-mismatch"], reason: "no content" },
		{ rules: ["slow-request", "queries-in-a-loop"], reason: "no spans" },
	]);
});

test.each([
	["", [], []],
	["1 rule could not look", [content], []],
	["2 rules could not look, 1 at a part of their calls only", spans, [content]],
	["2 rules could look at a part of their calls only", [], spans],
])("%s", (text, none, partly) => {
	expect(unseenText({ not_observable: none, partly_observable: partly } as unknown as Diagnosis)).toBe(text);
});
