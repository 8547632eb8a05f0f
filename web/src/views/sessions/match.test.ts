import { expect, test } from "vitest";
import { labelsOf, matching } from "./match";

const sessions = [
	{ id: "first", command: "make -j8 all", target: "", labels: { job: "17", site: "Berlin" } },
	{ id: "second", command: "make --jobs=17 all", target: "", labels: { job: "170" } },
	{ id: "third", command: null, target: "--all", labels: { note: "second run" } },
	{ id: "job-17", command: "make", target: "", labels: {} },
];

function ids(wanted: string): string[] {
	return matching(sessions, wanted).map((session) => session.id);
}

test("a label is matched as a whole", () => {
	expect(ids("job=17")).toEqual(["first"]);
	expect(ids("JOB=17")).toEqual(["first"]);
	expect(ids("job=1")).toEqual([]);
	expect(ids("job=17*")).toEqual(["first", "second"]);
	expect(ids("job=")).toEqual(["first", "second"]);
	expect(ids("site=berlin job=17")).toEqual(["first"]);
	expect(ids("site=berlin job=170")).toEqual([]);
	expect(ids('note="second run"')).toEqual(["third"]);
	// While it is being typed.
	expect(ids('note="second r')).toEqual([]);
	expect(ids('note="second r*')).toEqual(["third"]);
});

test("other words are parts of the name, the command, or a label", () => {
	expect(ids("")).toEqual(["first", "second", "third", "job-17"]);
	expect(ids("make all")).toEqual(["first", "second"]);
	expect(ids("jobs=17")).toEqual(["second"]);
	expect(ids("second")).toEqual(["second", "third"]);
	expect(ids("berl")).toEqual(["first"]);
	expect(ids("=17")).toEqual(["first", "second"]);
	expect(ids("17")).toEqual(["first", "second", "job-17"]);
	expect(ids("nothing")).toEqual([]);
});

test("a command that is written in full is that command", () => {
	expect(ids("make")).toEqual(["job-17"]);
	expect(ids("--all")).toEqual(["third"]);
});

test("labels are shown as they are given", () => {
	expect(sessions.map(labelsOf)).toEqual([["job=17", "site=Berlin"], ["job=170"], ["note=second run"], []]);
});
