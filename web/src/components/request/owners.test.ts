import { expect, it } from "vitest";
import type { Owner } from "../../api/types";
import { areaOf, meanOf, ownerName, peakOf, summaryOf, unseenText } from "./owners";

const owner = (
	comm: string | null,
	pid: number | null,
	own: boolean,
	waiting: number[],
	in_device: number[],
): Owner => ({
	comm,
	pid,
	own,
	requests: 2,
	bytes: 2048,
	waiting,
	in_device,
});

const mine = owner("python3", 7, true, [1, 0], [0, 1]);
const fio = owner("fio", 9, false, [30, 14], [2, 2]);

it("names whose requests a device had", () => {
	expect([mine, fio, owner(null, null, false, [], []), owner("jbd2", null, false, [], [])].map(ownerName)).toEqual([
		"this call",
		"fio 9",
		"others",
		"jbd2",
	]);
	expect(meanOf(fio)).toBe(24);
	expect(peakOf([mine, fio])).toBe(32);
	expect(summaryOf({ name: "vda", unseen: 0, owners: [mine, fio] }, true)).toBe(
		"This call had 2 requests (2 KiB) on vda; fio 9 had 2 requests (2 KiB), 24 at once on average.",
	);
	// Processes of one program are one neighbor.
	const many = [1, 2, 3].map((pid) => owner("dd", pid, false, [10, 10], [0, 0]));
	expect(summaryOf({ name: "vda", unseen: 0, owners: [mine, fio, ...many] }, true)).toContain(
		"dd had 6 requests (6 KiB), 30 at once on average.",
	);
	expect(summaryOf({ name: "vda", unseen: 0, owners: [mine] }, true)).toBe(
		"This call had 2 requests (2 KiB) on vda; no other process used it.",
	);
	// The sum of the rest is no neighbor.
	const rest = owner(null, null, false, [90, 90], [0, 0]);
	expect(summaryOf({ name: "vda", unseen: 0, owners: [mine, fio, rest] }, true)).toContain("; fio 9 had 2 requests");
});

it("says which requests are in no row", () => {
	expect(unseenText({ name: "vda", unseen: 0 })).toBeNull();
	expect(unseenText({ name: "vda", unseen: 1407 })).toBe(
		"Not counted: 1\u202f407 requests to vda without a recorded completion, queued before this call ended.",
	);
	expect(summaryOf({ name: "vda", unseen: 3, owners: [] }, true)).toBe(
		"No completion of this call's requests on vda was seen; no other process is known to have used it.",
	);
});

it("draws steps with gaps where there is nothing", () => {
	const box = { left: 0, width: 30, bottom: 10, tall: 10 };
	expect(areaOf([[1, 0, 2]], box, 2, 3)).toBe("M0.0 10L0.0 5.0L10.0 5.0L10.0 10ZM20.0 10L20.0 0.0L30.0 0.0L30.0 10Z");
	expect(areaOf([[0, 0, 0]], box, 2, 3)).toBe("");
});
