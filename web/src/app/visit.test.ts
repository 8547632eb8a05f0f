import { expect, it } from "vitest";
import { statesOf } from "./visit";

it("follows each link into the session once", () => {
	const found = statesOf(
		[
			"?s=a.fathom&view=request&rid=7",
			"?s=a.fathom&rid=7&view=request",
			"?s=a.fathom&view=overview",
			"?s=b.fathom&view=request&rid=7",
			"?s=a.fathom&view=devices&device=vda",
		],
		"a.fathom",
		new Set(["?s=a.fathom&view=overview"]),
	);
	expect(found.map(({ view, rid, params }) => [view, rid, params])).toEqual([
		["request", 7, {}],
		["devices", null, { device: "vda" }],
	]);
});
