import { describe, expect, it } from "vitest";
import type { Comparison } from "../../api/compare";
import type { ThreadRow } from "../../api/types";
import { filtersOfProcesses } from "./processes";

const thread = (pid: number, tid: number, process: string | null, comm = process) =>
	({ pid, tid, process, comm }) as ThreadRow;

function filter(name: string, rows: readonly string[], after: readonly ThreadRow[], commands = ["/x/app", "/y/other"]) {
	const side = (command = "") => ({ sessions: [{ command: [command, "-v"] }] });
	const comparison = {
		before: side(commands[0]),
		after: side(commands[1]),
		tables: { processes: rows.map((row) => ({ name: row, status: "both", figures: [] })) },
	} as unknown as Comparison;
	return filtersOfProcesses(comparison, "after", after).get(name) ?? null;
}

describe("a row of processes", () => {
	const workers = [thread(11, 11, "worker-2"), thread(10, 10, "worker-1"), thread(12, 12, "sh")];
	it("leads to all that its pattern stands for", () => {
		expect(filter("worker-#", ["worker-#", "sh"], workers)).toEqual({ comm: ["worker-1", "worker-2"] });
		expect(filter("sh", ["worker-#", "sh"], workers)).toEqual({ comm: ["sh"] });
	});
	it("has all threads of its processes, whatever they are called", () => {
		const threads = [...workers, thread(10, 20, "worker-1", "flusher")];
		expect(filter("worker-#", ["worker-#", "sh"], threads)).toEqual({ pid: [11, 10] });
		// A thread of another process that is called like these is not of them.
		expect(filter("sh", ["worker-#", "sh"], [...workers, thread(10, 21, "worker-1", "sh")])).toEqual({ pid: [12] });
	});
	it("leaves processes to the row that names them most closely", () => {
		const threads = [
			thread(1, 1, "job-7"),
			thread(2, 2, "job-deadbeef0"),
			thread(3, 3, "job-x"),
			thread(4, 4, "job-77"),
		];
		const rows = ["job-#", "job-*", "job-x"];
		expect(filter("job-#", rows, threads)).toEqual({ comm: ["job-7", "job-77"] });
		expect(filter("job-*", rows, threads)).toEqual({ comm: ["job-deadbeef0"] });
		expect(filter("job-x", rows, threads)).toEqual({ comm: ["job-x"] });
	});
	it("is the command, if that has another name on each side", () => {
		const long = "/usr/bin/another-long-program";
		const threads = [thread(1, 1, "another-long-pr"), thread(2, 2, "sh")];
		expect(filter("(the command)", ["(the command)", "sh"], threads, ["/x/app", long])).toEqual({
			comm: ["another-long-pr"],
		});
	});
	it("takes the text of a name as it is", () => {
		const threads = [thread(1, 1, "a.b+(c)-1"), thread(2, 2, "axb+(c)-1")];
		expect(filter("a.b+(c)-#", ["a.b+(c)-#", "axb+(c)-1"], threads)).toEqual({ comm: ["a.b+(c)-1"] });
	});
	it("leads nowhere if the session has none of them", () => {
		expect(filter("worker-#", ["worker-#"], [thread(1, 1, "sh"), thread(2, 2, null)])).toBeNull();
	});
});
