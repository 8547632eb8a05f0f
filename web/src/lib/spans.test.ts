import { expect, it } from "vitest";
import { nameKey, nameOf, nameText } from "./spans";

it("has names in addresses", () => {
	for (const name of [
		{ service: "shop", name: "GET /", kind: "server" },
		{ service: null, name: null, kind: "internal" },
		{ service: `"'`, name: "a,b]", kind: "" },
	]) {
		expect(nameOf(nameKey(name))).toEqual(name);
	}
});

it.each(["", "null", "{}", "[1,2,3]", '["a","b"]', '["a","b",null]', "[", '["a",{},"c"]'])("refuses %s", (text) => {
	expect(nameOf(text)).toBeNull();
});

it("says that a span has no name", () => {
	expect(nameText({ name: null })).toBe("(no name)");
	expect(nameText({ name: "GET /" })).toBe("GET /");
});
