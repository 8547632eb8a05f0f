import { expect, it } from "vitest";
import { answersText, errorsOf } from "./errors";

it("separates failures, look-ups of missing files and other expected errors", () => {
	const texts: Record<string, string[]> = { errno: ["ENOENT", "ENOENT", "ENOTDIR", "EAGAIN"] };
	const sums = errorsOf({
		rows: 4,
		f64: () => Float64Array.of(2, 300, 68, 5),
		texts: (name) => texts[name] ?? [],
		flags: () => [true, false, false, false],
	});
	expect(sums).toEqual({ failed: 2, answers: 373, missing: 368 });
	expect(answersText(sums)).toBe("368 look-ups of missing files");
	expect(answersText({ failed: 0, answers: 1, missing: 1 })).toBe("1 look-up of a missing file");
	expect(answersText({ failed: 0, answers: 7, missing: 0 })).toBe("7 expected errors");
	expect(answersText({ failed: 9, answers: 0, missing: 0 })).toBe("");
});
