import { describe, expect, it } from "vitest";
import { type Names, offersAt } from "./complete";

const NAMES: Names[] = [
	{
		name: "syscalls",
		doc: "calls",
		columns: [
			{ name: "rid", sql_type: "BIGINT", doc: "id" },
			{ name: "syscall", sql_type: "VARCHAR", doc: "name" },
			{ name: "offset", sql_type: "BIGINT", doc: "where" },
		],
	},
	{ name: "block", doc: "requests", columns: [{ name: "device", sql_type: "VARCHAR", doc: "which" }] },
];

const offered = (text: string, asked = false) => {
	const cursor = text.indexOf("|");
	return offersAt(text.replace("|", ""), cursor, NAMES, asked)?.list.map((o) => o.text) ?? null;
};

describe("offers", () => {
	it("are tables behind FROM", () => {
		expect(offered("SELECT * FROM sys|")).toEqual(["syscalls"]);
		expect(offered("SELECT * FROM |", true)).toEqual(["syscalls", "block"]);
	});
	it("are columns of tables that are named", () => {
		expect(offered("SELECT sysc| FROM syscalls")).toEqual(["syscall", "syscalls"]);
		expect(offered("SELECT dev| FROM syscalls")).toBeNull();
		expect(offered("SELECT dev| FROM block")).toEqual(["device"]);
	});
	it("are the columns of an alias behind its dot", () => {
		expect(offered("SELECT b.| FROM syscalls s JOIN block b", true)).toEqual(["device"]);
		expect(offered("SELECT x.d| FROM block b")).toBeNull();
	});
	it("quote what must be", () => {
		expect(offered("SELECT off| FROM syscalls")).toEqual(['"offset"']);
	});
	it("are placeholders behind a dollar", () => {
		expect(offered("WHERE ts_ns < $t|")).toEqual(["$to"]);
	});
	it("are none in texts, comments, and before anything is typed", () => {
		expect(offered("SELECT 'sys|' FROM syscalls")).toBeNull();
		expect(offered("SELECT 1 -- sys|")).toBeNull();
		expect(offered("SELECT |")).toBeNull();
	});
});
