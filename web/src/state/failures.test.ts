import { expect, it } from "vitest";
import { failuresOf } from "./failures";

it("takes from the server which errors of which calls are failures", () => {
	const columns: Record<string, (string | null)[]> = {
		syscall: ["openat", "rename", "access", "rename"],
		errno: ["ENOENT", "ENOENT", "ENOENT", "ENOENT"],
	};
	const found = failuresOf({
		rows: 4,
		texts: (name) => columns[name] ?? [],
		flags: () => [false, true, false, true],
	});
	expect([...found]).toEqual(["rename ENOENT"]);
});
