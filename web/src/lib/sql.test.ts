import { describe, expect, it } from "vitest";
import { literal } from "./quote";
import { condition, errorIn, expand, identifier, type Shown, tokens, unheeded } from "./sql";

const SHOWN: Shown = { start: 1000, span: { from: 10.4, to: 310.2 }, filter: {}, buckets: 300 };

describe("tokens", () => {
	it("cover the text without gaps", () => {
		const sql = "SELECT 'it''s', \"a b\", 1.5e3 -- why\nFROM t /* open";
		const found = tokens(sql);
		expect(found.map((t) => sql.slice(t.from, t.to)).join("")).toBe(sql);
		expect(found.filter((t) => t.kind === "keyword").map((t) => sql.slice(t.from, t.to))).toEqual(["SELECT", "FROM"]);
		expect(found.filter((t) => t.kind === "text").map((t) => sql.slice(t.from, t.to))).toEqual(["'it''s'"]);
		expect(found.at(-1)?.kind).toBe("comment");
	});
	it("end with a text that is not closed", () => {
		expect(tokens("select 'abc").at(-1)).toEqual({ kind: "text", from: 7, to: 11 });
	});
});

describe("placeholders", () => {
	it("stand for the window on the clock of the tables", () => {
		const made = expand("SELECT $from, $to, $bucket", SHOWN);
		expect(made.text).toBe("SELECT 1010, 1311, 1");
		expect(made.follows).toBe(true);
	});
	it("are left alone in texts and comments", () => {
		const sql = "SELECT '$from' -- $to";
		expect(expand(sql, SHOWN).text).toBe(sql);
		expect(expand(sql, SHOWN).follows).toBe(false);
	});
	it("tell what a statement leaves aside", () => {
		const heeds = (sql: string) => expand(sql, SHOWN);
		expect(unheeded(heeds("SELECT 1"), true, {})).toBe("");
		expect(unheeded(heeds("SELECT 1"), false, { pid: [1] })).toBe(
			"does not heed the window ($from, $to) and the filter ($filter)",
		);
		expect(unheeded(heeds("SELECT 1 WHERE ts_ns > $from"), false, { pid: [1] })).toBe(
			"does not heed the filter ($filter)",
		);
		expect(unheeded(heeds("SELECT 1 WHERE ts_ns > $from AND $filter"), false, { pid: [1] })).toBe("");
	});
	it("that nobody knows are told", () => {
		expect(expand("SELECT $nothing", SHOWN).unknown).toEqual(["$nothing"]);
	});
	it("lead back to where they stand", () => {
		const made = expand("SELECT $from, x", SHOWN);
		const x = made.text.indexOf("x");
		expect(made.back(x)).toBe("SELECT $from, x".indexOf("x"));
		expect(made.back(9)).toBe(7);
		expect(made.back(1000)).toBe("SELECT $from, x".length);
	});
});

describe("the filter", () => {
	it("is true when there is none", () => {
		expect(condition({})).toBe("true");
	});
	it("cannot end the text that it stands in", () => {
		expect(condition({ comm: ["a'; DROP TABLE x; --"] })).toBe("(comm IN ('a''; DROP TABLE x; --'))");
		expect(condition({ path: "'" })).toBe(
			"((coalesce(contains(path, ''''), false) OR coalesce(contains(path2, ''''), false)))",
		);
	});
	it("has every member", () => {
		const all = condition({
			pid: [1],
			not_tid: [2, 3],
			syscall: ["read"],
			file: [7],
			layer: ["block"],
			error: "any",
			dur: [10, null],
		});
		for (const part of [
			"pid IN (1)",
			"(tid IS NULL OR tid NOT IN (2, 3))",
			"syscall IN ('read')",
			"file_id IN (7)",
			"rid IN (SELECT rid FROM slices WHERE layer IN ('block'))",
			"errno IS NOT NULL",
			"dur_ns >= 10",
		])
			expect(all).toContain(part);
	});
	it("has tenants as the server has them", () => {
		const unit = condition({ unit: ["nginx"] });
		expect(unit).toContain("(cgroup || '/') LIKE '%/nginx.service/%' ESCAPE '\\'");
		expect(unit).toContain("pid IN (SELECT pid FROM tenants WHERE tid IS NULL AND");
		expect(condition({ not_pod: ["shop/web_*"] })).toContain("(namespace = 'shop' AND pod LIKE 'web\\_%' ESCAPE '\\')");
		expect(condition({ not_namespace: ["a'b"] })).toMatch(/^\(NOT coalesce\(.*namespace = 'a''b'/);
		expect(condition({ volume: ["data"] })).toBe(
			"(coalesce(file_id IN (SELECT file_id FROM volume_files WHERE claim = 'data' OR volume = 'data'), false))",
		);
		expect(condition({ full_path: ["/a"] })).toBe("(path IN ('/a'))");
	});
	it("tells errors from none", () => {
		expect(condition({ error: "none" })).toBe("(errno IS NULL)");
		expect(condition({ not_error: ["ENOENT"] })).toBe("((errno IS NULL OR errno NOT IN ('ENOENT')))");
	});
});

describe("errors", () => {
	it("stand where the caret points", () => {
		const sql = "SELECT\n rid\nFROM syscallz";
		const text =
			'Catalog Error: Table with name syscallz does not exist!\nDid you mean "syscalls"?\n\nLINE 3: FROM syscallz\n             ^';
		const found = errorIn(text, sql);
		expect(sql.slice(found.at, found.at + found.length)).toBe("syscallz");
		expect(found.message).toBe('Catalog Error: Table with name syscallz does not exist!\nDid you mean "syscalls"?');
	});
	it("are found in long lines, of which the database shows a part", () => {
		const sql = `SELECT ${"a, ".repeat(60)}nothing FROM t`;
		const excerpt = sql.slice(150);
		const at = excerpt.indexOf("nothing");
		const text = `Binder Error: no\n\nLINE 1: ...${excerpt}\n${" ".repeat(8 + 3 + at)}^`;
		const found = errorIn(text, sql);
		expect(sql.slice(found.at, found.at + found.length)).toBe("nothing");
	});
	it("that name a word stand at it", () => {
		expect(errorIn('Parser Error: syntax error at or near "SELEC"', "SELEC 1")).toEqual({
			message: 'Parser Error: syntax error at or near "SELEC"',
			at: 0,
			length: 5,
		});
	});
	it("of the end stand at the end", () => {
		expect(errorIn("Parser Error: syntax error at end of input", "select (1 ").at).toBe(8);
	});
	it("without a place have none", () => {
		expect(errorIn("out of memory", "SELECT 1").at).toBe(-1);
	});
});

it("quotes", () => {
	expect(literal("it's")).toBe("'it''s'");
	expect(identifier("ts_ns")).toBe("ts_ns");
	expect(identifier("offset")).toBe('"offset"');
	expect(identifier('a"b')).toBe('"a""b"');
});

describe("a word of SQL where a name should be", () => {
	const SQL = "SELECT rid, offset, bytes FROM syscalls";
	it("is named, with what to write instead", () => {
		// The parser complains about the sign behind it.
		const line = `Parser Error: syntax error at or near ","\n\nLINE 1: ${SQL}\n${" ".repeat(8 + 18)}^`;
		for (const text of [line, 'Parser Error: syntax error at or near ","']) {
			const found = errorIn(text, SQL);
			expect(found.message).toBe("offset is a keyword of SQL: the column is called file_offset");
			expect([found.at, found.length]).toEqual([12, 6]);
		}
	});
	it("is not seen where there is none", () => {
		const text = 'Parser Error: syntax error at or near "syscalls"';
		expect(errorIn(text, "SELECT rid FORM syscalls").message).toContain("syntax error");
	});
});
