import { expect, it } from "vitest";
import type { FleetGroup } from "../../api/types";
import { overDays } from "./keys";

function group(day: string | null, host: string | null, time_ns: number): FleetGroup {
	const nothing = { command: null, label: null, finding: null, tenant: null, volume: null, device: null };
	return { ...nothing, day, host, sessions: 1, hosts: 1, calls: 1, bytes: 1, time_ns, findings: 0, session: "s" };
}

it("every day between the first and the last has a place", () => {
	const groups = [group("2026-02-27", "a", 5), group("2026-03-02", "a", 7), group("2026-03-02", "b", 1)];
	const { days, times } = overDays(groups, "host");
	expect(days).toEqual(["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"]);
	expect(times.get("a")).toEqual([5, 0, 0, 7]);
	expect(times.get("b")).toEqual([0, 0, 0, 1]);
});

it("groups without a value or a day are no error", () => {
	const { days, times } = overDays([group("2026-01-01", null, 3), group("?", "a", 9)], "tenant");
	expect(days).toEqual(["2026-01-01"]);
	expect(times.get("")).toEqual([3]);
	expect(overDays([], "host").days).toEqual([]);
});

it("of many years the last one is shown", () => {
	const { days, times } = overDays([group("1970-01-01", "a", 9), group("2026-01-01", "a", 1)], "host");
	expect(days).toHaveLength(366);
	expect(days.at(-1)).toBe("2026-01-01");
	expect(times.get("a")?.reduce((a, b) => a + b)).toBe(1);
});
