import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { archiveSender, keptFiles, questionKey } from "./archive";

const kept = (path: string, text: string, body?: string) => ({
	path,
	...(body === undefined ? {} : { body }),
	kind: "application/json",
	data: gzipSync(text).toString("base64"),
});

const archive = {
	start: "?s=a&view=overview",
	views: ["overview"],
	missing: 0,
	answers: [
		kept("/sessions/a/tiles?by=none&pixels=600", "all"),
		kept("/sessions/a/sql", "rows", '{"sql":"SELECT 1"}'),
		kept("/sessions/a/timeline?lanes=1&from=0&to=1000&pixels=512", "wide"),
		kept("/sessions/a/timeline?lanes=1&from=0&to=100&pixels=512", "narrow"),
		kept("/sessions/b/timeline?pixels=2048", "every thread"),
		kept("/sessions/a/top?by=file&sort=bytes&limit=300", "files"),
		kept("/sessions/a/top?by=file&sort=bytes&limit=12", "few"),
		kept("/sessions/a/offsets?file=7&width=9&height=9&unique=0", "accesses"),
	],
};
const send = archiveSender(archive);
const text = async (path: string, body?: string) => {
	const answer = await send(`/api${path}`, body === undefined ? {} : { method: "POST", body });
	return answer.ok ? answer.text() : answer.status;
};

describe("a saved page", () => {
	it("answers what was asked, however finely it is drawn", async () => {
		expect(await text("/sessions/a/tiles?pixels=1200&by=none")).toBe("all");
		expect(await text("/sessions/a/tiles?by=syscall&pixels=600")).toBe(404);
		expect(await text("/sessions/a/sql", '{"sql":"SELECT 1"}')).toBe("rows");
		expect(await text("/sessions/a/sql", '{"sql":"SELECT 2"}')).toBe(404);
	});
	it("draws tiles of the timeline from wider ones", async () => {
		expect(await text("/sessions/a/timeline?lanes=1&from=10&to=60&pixels=512")).toBe("narrow");
		expect(await text("/sessions/a/timeline?lanes=1&from=10&to=600&pixels=512")).toBe("wide");
		expect(await text("/sessions/a/timeline?lanes=2&from=10&to=60&pixels=512")).toBe(404);
		expect(await text("/sessions/b/timeline?lanes=2&from=10&to=60&pixels=512")).toBe("every thread");
	});
	it("lists files in another order than they were saved in, where the page sorts them", async () => {
		expect(await text("/sessions/a/top?by=file&sort=time_ns&limit=300")).toBe("files");
		expect(await text("/sessions/a/top?by=file&sort=time_ns&limit=12")).toBe(404);
		expect(await text("/sessions/a/top?by=file&sort=time_ns&limit=300&f=x")).toBe(404);
		expect([...keptFiles(archive)]).toEqual(["7"]);
	});
	it("has questions in one order", () => {
		expect(questionKey("/x?b=1&a=2&width=9")).toBe(questionKey("/x?a=2&b=1"));
	});
});
