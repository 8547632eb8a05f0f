import { expect, it } from "vitest";
import type { Comparison, DiffRow } from "../../api/compare";
import { leadOf, leadOfChange } from "./leads";

const row = (name: string, more: Partial<DiffRow> = {}): DiffRow => ({ name, status: "both", figures: [], ...more });
const none = () => null;

it("leads to the calls of a row", () => {
	expect(leadOf("files", row("/data/log"), none)).toEqual({
		view: "table",
		side: "after",
		filter: { full_path: ["/data/log"] },
		params: { sort: "-dur_ns" },
	});
	const filter = (table: string, one: DiffRow) => leadOf(table, one, none)?.filter;
	expect(filter("operations", row("fsync", { on: "/data/part-#.log", names: [3, 4] }))).toEqual({
		syscall: ["fsync"],
		path: "/data/part-",
	});
	expect(filter("errors", row("openat", { on: "ENOENT" }))).toEqual({ syscall: ["openat"], error: ["ENOENT"] });
	expect(leadOf("processes", row("worker-#"), none)).toBeNull();
	expect(leadOf("processes", row("a-#", { status: "gone" }), (name, side) => ({ comm: [name, side] }))).toEqual({
		view: "table",
		side: "before",
		filter: { comm: ["a-#", "before"] },
		params: { sort: "-dur_ns" },
	});
	expect(leadOf("syscalls", row("read", { status: "gone" }), none)?.side).toBe("before");
	expect(leadOf("devices", row("read", { on: "vda" }), none)).toMatchObject({
		view: "devices",
		params: { device: "vda" },
	});
});

it("finds the row of a change", () => {
	const tables = {
		operations: [row("fsync", { on: "/a" }), row("fsync", { on: "/b" })],
		layers: [row("run queue", { on: "sched" })],
	} as unknown as Comparison["tables"];
	const lead = (table: string, subject: string) => leadOfChange({ tables }, { table, subject }, none)?.filter;
	expect(lead("operations", "fsync on /b")).toEqual({ syscall: ["fsync"], full_path: ["/b"] });
	expect(lead("layers", "layer sched (run queue)")).toEqual({ layer: ["sched"] });
	expect(lead("findings", "anything")).toBeUndefined();
});
