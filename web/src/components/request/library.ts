// Library calls of a session recorded with --library: the one that made a system call, and sums by function.

import type { Columns } from "../../api/arrow";
import { literal } from "../../lib/quote";

/** A call of a library's function. */
export interface LibraryCall {
	id: number;
	name: string;
	library: string;
	/** Since the start of the session. */
	t: number;
	/** Null for a call that never returned. */
	dur: number | null;
	/** Null for a function without one, and for a call that has not returned. */
	ret: string | null;
	failed: boolean;
	/** Bytes requested, and bytes moved as the function reports; null if it says nothing of them. */
	size: number | null;
	bytes: number | null;
	path: string | null;
	/** Number of recorded library calls that it is in. */
	depth: number;
}

/** A system call that a library call made. */
export interface Made {
	rid: number;
	t: number;
	dur: number;
	syscall: string;
	errno: string | null;
	bytes: number;
	path: string | null;
}

/** The longest system calls that a function's calls made, for the view of SQL. */
export function functionSql({ name, library }: Pick<FunctionSums, "name" | "library">): string {
	return `SELECT rid, u.dur_ns AS function_ns, u.size AS requested, syscall, c.dur_ns, c.bytes, c.path
FROM user_calls AS u JOIN syscalls AS c USING (user_call)
WHERE function = ${literal(name)} AND library = ${literal(library)}
ORDER BY c.dur_ns DESC
LIMIT 100`;
}

function known(value: number | undefined): number | null {
	return value === undefined || Number.isNaN(value) ? null : value;
}

export function chainOf(answer: Columns): LibraryCall[] {
	const failed = answer.flags("failed");
	const number = (column: string, i: number) => known(answer.f64(column)[i]);
	return Array.from({ length: answer.rows }, (_, i) => ({
		id: number("user_call", i) ?? 0,
		name: answer.text("function", i) ?? "",
		library: answer.text("library", i) ?? "",
		t: number("t", i) ?? 0,
		dur: number("dur", i),
		ret: answer.text("ret", i),
		failed: failed[i] === true,
		size: number("size", i),
		bytes: number("bytes", i),
		path: answer.text("path", i),
		depth: number("depth", i) ?? 0,
	}));
}

export function madeOf(answer: Columns): Made[] {
	const number = (column: string, i: number) => answer.f64(column)[i] || 0;
	return Array.from({ length: answer.rows }, (_, i) => ({
		rid: number("rid", i),
		t: number("t", i),
		dur: number("dur", i),
		syscall: answer.text("syscall", i) ?? "",
		errno: answer.text("errno", i),
		bytes: number("bytes", i),
		path: answer.text("path", i),
	}));
}

/** Sums of a function's calls. */
export interface FunctionSums {
	name: string;
	library: string;
	calls: number;
	/** Calls among these without a row: with such calls every figure but their number is null. */
	counted: number;
	failed: number | null;
	time: number | null;
	p50: number | null;
	p99: number | null;
	max: number | null;
	/** Bytes requested; null if the function takes no number of bytes. */
	size: number | null;
	/** The system calls that they made themselves. */
	syscalls: number | null;
	syscallTime: number | null;
	syscallBytes: number | null;
}

export function functionsOf(answer: Columns): FunctionSums[] {
	const number = (column: string, i: number) => known(answer.f64(column)[i]);
	return Array.from({ length: answer.rows }, (_, i) => ({
		name: answer.text("function", i) ?? "",
		library: answer.text("library", i) ?? "",
		calls: number("calls", i) ?? 0,
		counted: number("counted", i) ?? 0,
		failed: number("failed", i),
		time: number("total_ns", i),
		p50: number("p50_ns", i),
		p99: number("p99_ns", i),
		max: number("max_ns", i),
		size: number("size", i),
		syscalls: number("syscalls", i),
		syscallTime: number("syscall_ns", i),
		syscallBytes: number("syscall_bytes", i),
	}));
}

/** The last part of a path. */
export function fileName(path: string): string {
	return path.slice(path.lastIndexOf("/") + 1) || path;
}
