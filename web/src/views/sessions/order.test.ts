import { expect, it } from "vitest";
import { inOrder } from "./order";

it("the earlier session comes first, whichever was ticked first", () => {
	const sessions = [
		{ id: "new", started_unix_ms: 20 },
		{ id: "old", started_unix_ms: 10 },
	];
	expect(inOrder(["new", "old"], sessions)).toEqual(["old", "new"]);
	expect(inOrder(["old", "new"], sessions)).toEqual(["old", "new"]);
	expect(inOrder(["new"], sessions)).toEqual(["new"]);
});
