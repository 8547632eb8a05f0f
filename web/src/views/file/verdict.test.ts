import { expect, it } from "vitest";
import { verdictText } from "./verdict";

it("says how a file is read and written", () => {
	const writes = { sequential: 0.962, forward: 0.97, passes: 9 };
	const reads = { sequential: 0.02, forward: 0.5, passes: 400 };
	expect(verdictText(reads, writes)).toBe("Writes 96.2 % sequential in 9 passes; reads scattered (2 % sequential)");
	expect(verdictText({ sequential: 1, forward: 1, passes: 1 }, null)).toBe("Reads 100 % sequential in one pass");
	expect(verdictText(null, { sequential: 0, forward: 0.9, passes: 2 })).toBe(
		"Writes forward with gaps in 2 passes (0 % sequential)",
	);
	expect(verdictText(null, null)).toBe("");
});
