import { expect, it } from "vitest";
import type { Role } from "../api/types";
import { has } from "./access";

it("lets each role do what the roles before it may", () => {
	const of = (role: Role) => ({ role, name: null, saves: false, stops: false });
	const all: Role[] = ["look", "query", "record"];
	const table = all.map((own) => all.map((wanted) => has(of(own), wanted)));
	expect(table).toEqual([
		[true, false, false],
		[true, true, false],
		[true, true, true],
	]);
	expect(has(null, "record")).toBe(true);
});
