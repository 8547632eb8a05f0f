// Comparisons of sessions with processes whose names contain numbers, and with page faults on mapped files, in a browser.

import { expect, it } from "vitest";
import { duration } from "../../src/lib/format.ts";
import { open } from "./harness.ts";
import { MAPPED, sql } from "./recorded.ts";
import { onStage, server, tab } from "./stage.ts";

/** Workers with these numbers, the last of which has a thread with a name of its own. */
const workers = (numbers: string, times: number) => `
cat > worker.py <<'END'
import ctypes, os, sys, threading
def call(name):
    ctypes.CDLL(None).prctl(15, name.encode())
call("worker-" + sys.argv[1])
def write(path, times):
    with open(path, "wb", buffering=0) as f:
        for i in range(times): f.write(b"x" * 512)
def flush():
    call("flusher")
    write("flushed-" + sys.argv[1], 50)
write("written-" + sys.argv[1], int(sys.argv[2]))
if sys.argv[3] == "last":
    t = threading.Thread(target=flush); t.start(); t.join()
END
for n in ${numbers}; do last=$n; done
for n in ${numbers}; do
	[ $n = $last ] && at=last || at=other
	python3 worker.py $n ${times} $at
done
`;

onStage(
	"comparisons",
	[
		["few", `${workers("1 2", 100)}${MAPPED}`],
		["many", `${workers("11 12 13", 4000)}${MAPPED}`],
	],
	() => {
		const compared = { view: "compare", before: "few.fathom", after: "many.fathom" };

		it("lead from a name with a number to the calls of all its processes", async () => {
			const isWorker = "pid IN (SELECT pid FROM processes WHERE pid = tid AND comm LIKE 'worker-%')";
			const [wanted] = await sql(
				`SELECT count(*)::DOUBLE AS calls, count(DISTINCT pid)::DOUBLE AS pids, count(DISTINCT comm)::DOUBLE AS names FROM syscalls WHERE ${isWorker}`,
				"many.fathom",
			);
			// Three workers, and a thread with another name.
			expect(wanted).toMatchObject({ pids: 3 });
			expect(Number(wanted?.["names"])).toBeGreaterThan(3);
			await open(tab, server, { ...compared, table: "processes" });
			const row = tab.page.locator(".compare-table tbody tr", { hasText: "worker-#" });
			await expect.poll(() => row.getByRole("link").count()).toBe(1);
			await row.getByRole("link").click();
			await expect.poll(() => tab.page.url()).toContain("view=table");
			const url = new URL(tab.page.url());
			expect(url.searchParams.get("s")).toBe("many.fathom");
			expect(JSON.parse(url.searchParams.get("f") ?? "{}").pid).toHaveLength(3);
			// With the thread of another name, which may be in none of the rows that are shown: the slowest.
			await open(tab, server, { s: "many.fathom", f: url.searchParams.get("f") ?? "" });
			const calls = tab.page.locator(".summary > div").filter({ has: tab.page.locator("dt", { hasText: /^Calls$/ }) });
			await expect
				.poll(async () => Number((await calls.getAttribute("title"))?.replace(/\D/g, "")))
				.toBe(wanted?.["calls"]);
		});

		it("name the page faults, which are in no figure of theirs", async () => {
			const faults = async (id: string) =>
				Number((await sql("SELECT sum(dur_ns)::DOUBLE AS ns FROM faults", id))[0]?.["ns"]);
			await open(tab, server, compared);
			const named = tab.page.locator(".outcome dl > div", { hasText: "Page faults, besides the calls" });
			const both = [duration(await faults("few.fathom")), duration(await faults("many.fathom"))];
			await expect.poll(() => named.locator("dd").innerText()).toBe(both.join(" → "));
		});
	},
);
