import { expect, it } from "vitest";
import { savedName } from "./save";

it("names files after the session and the part", () => {
	expect(savedName("redis.fathom", "rates")).toBe("redis-rates");
	expect(savedName(null, "compare-time")).toBe("compare-time");
	expect(savedName("a/../b c.fathom", "<x>")).toBe("a-..-b-c--x-");
	expect(savedName("s".repeat(200), "rates")).toHaveLength(80);
	expect(savedName(null, "")).toBe("fathom");
});
