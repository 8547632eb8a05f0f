import { expect, it } from "vitest";
import { savedName } from "./save";

it("names files after the session and the part", () => {
	expect(savedName("redis.fathom", "rates")).toBe("redis-rates");
	expect(savedName(null, "compare-time")).toBe("compare-time");
	expect(savedName("a/../b c.fathom", "<x>")).toBe("a-..-b-c--x-");
	expect(savedName("s".repeat(200), "rates")).toBe(`${"s".repeat(74)}-rates`);
	expect(savedName("redis", "p".repeat(200))).toBe(`-${"p".repeat(79)}`);
	expect(savedName(null, "")).toBe("fathom");
});
