"""Checks the set of two machines: check.py FATHOM DIRECTORY.

DIRECTORY has a directory for each machine with its sessions, and in `bounds` what clock.c has measured without
fathom: lines "own-ns other-ns", which say that the other clock shows at least the second when the own one
shows the first.
"""

import json
import subprocess
import sys

FATHOM, DIRECTORY = sys.argv[1:]
# Both clocks together may change by so much: the kernel's limit for each, and by the length of a tick.
ROUNDS = ("frequency", "tick")


def fathom(*arguments):
    done = subprocess.run([FATHOM, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def rows(where, sql):
    return json.loads(fathom("query", where, sql, "--format", "json"))


def bounds(machine):
    with open(f"{DIRECTORY}/{machine}/bounds", encoding="ascii") as lines:
        return [tuple(map(int, line.split())) for line in lines]


class Map:
    """What set.json says of a member: from its clock to the other one."""

    def __init__(self, clock):
        self.segments = clock["map"]["segments"]
        self.errors, self.error_ns = clock["errors"], clock["error_ns"]

    def apply(self, at):
        started = [s for s in self.segments if s["from_ns"] <= at] or self.segments[:1]
        line = started[-1]
        since = at - line["from_ns"]
        return line["to_ns"] + since + round(since * line["rate"])

    def error(self, at):
        """At a time of the other clock."""
        started = [e["error_ns"] for e in self.errors if e["from_ns"] <= at]
        return started[-1] if started else self.error_ns


def check_clocks(path, summary, session):
    """The relation against bounds that fathom did not make."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    clock = json.loads(text)["members"][1]["clock"]
    relation = Map(clock)
    member = summary["members"][1]
    begin, end = session
    # The clock of db, and then the one of web.
    web = [(other, own) for own, other in bounds("web")]
    db = bounds("db")
    inside = lambda at: begin <= at <= end
    worst = 0
    checked = [0, 0]
    # When web's clock shows `there`, that of db shows at least `at`: the time of `at` is `there` at most.
    for at, there in web:
        if inside(there):
            shown = relation.apply(at)
            worst = max(worst, shown - there)
            assert shown - there <= relation.error(shown), (at, there, shown)
            checked[0] += 1
    for at, there in db:
        shown = relation.apply(at)
        if inside(shown):
            worst = max(worst, there - shown)
            assert there - shown <= relation.error(shown), (at, there, shown)
            checked[1] += 1
    # They are bounds on both sides, and near each other.
    assert min(checked) > 100, checked
    width = min(
        there - other
        for at, there in web
        for near, other in db[max(0, nearest(db, at) - 2) : nearest(db, at) + 2]
        if abs(at - near) < 1_000_000
    )
    return worst, member["error_in_messages_ns"], checked, width


def nearest(bounds, at):
    low, high = 0, len(bounds)
    while low < high:
        middle = (low + high) // 2
        if bounds[middle][0] < at:
            low = middle + 1
        else:
            high = middle
    return low


def check_messages(path, summary):
    for traffic in summary["traffic"]:
        assert traffic["before_sent"] == 0, traffic
        assert traffic["messages"] > 100, traffic
    assert len(summary["traffic"]) == 2, summary["traffic"]
    # The first byte of each request and answer, by its position in its stream.
    for sender, receiver in (("web", "db"), ("db", "web")):
        early = rows(
            path,
            f"""WITH ends AS (SELECT * FROM flows WHERE protocol = 'tcp' AND 7000 IN (local_port, remote_port)),
            calls AS (SELECT s.*, f.protocol FROM syscalls s JOIN ends f USING (host, file_id))
            SELECT count(*) AS n, count(*) FILTER (r.ts_ns + r.dur_ns < s.ts_ns) AS early
            FROM calls s JOIN calls r ON s.host = '{sender}' AND r.host = '{receiver}'
                AND s.syscall = 'sendto' AND r.syscall = 'recvfrom' AND s.bytes > 0 AND r.bytes > 0
                AND s.file_offset BETWEEN r.file_offset AND r.file_offset + r.bytes - 1""",
        )[0]
        assert early["n"] > 100 and early["early"] == 0, early


def check_path(path, posts):
    """From the web request of the client to the disk of the server."""
    requests = rows(
        path,
        """SELECT rid, dur_ns FROM syscalls WHERE host = 'web' AND syscall = 'recvfrom' AND bytes > 0
        ORDER BY dur_ns DESC LIMIT 10""",
    )
    led = 0
    for request in requests:
        found = json.loads(
            fathom("critical-path", path, "--request", f"web:{request['rid']}", "--format", "json")
        )
        assert found["host"] == "web" and found["rid"] == request["rid"]
        segments = found["segments"]
        assert sum(segment["dur_ns"] for segment in segments) == found["dur_ns"] == request["dur_ns"]
        for before, after in zip(segments, segments[1:]):
            assert before["ts_ns"] + before["dur_ns"] == after["ts_ns"]
        disk = [s for s in segments if s["host"] == "db" and s["syscall"] == "fdatasync" and s["block"]]
        waited = sum(segment["dur_ns"] for segment in disk)
        assert all(segment["block"]["device"].startswith("vd") for segment in disk), disk
        if disk:
            [clock] = found["clocks"]
            assert clock["host"] == "db" and clock["error_ns"] > 0, clock
        led += waited > found["dur_ns"] / 2
    assert led >= 8, f"only {led} of the slowest 10 receives lead to the disk"
    # The client measured more around the slowest receive.
    assert requests[0]["dur_ns"] <= max(posts)


def main():
    for name in ROUNDS:
        sessions = [f"{DIRECTORY}/{machine}/{name}.fathom" for machine in ("web", "db")]
        path = f"{DIRECTORY}/{name}.fset"
        summary = json.loads(fathom("set", *sessions, "-o", path, "--format", "json"))
        assert [member["host"] for member in summary["members"]] == ["web", "db"]
        assert summary["members"][1]["clock"] == "messages", summary
        session = rows(path, "SELECT min(started_at_ns) AS a, max(ended_at_ns) AS b FROM session")[0]
        worst, error, checked, width = check_clocks(path, summary, (session["a"], session["b"]))
        check_messages(path, summary)
        with open(f"{DIRECTORY}/web/{name}.posts", encoding="ascii") as lines:
            posts = [int(line) for line in lines]
        check_path(path, posts)
        print(
            f"{name}: off by {worst} ns at most, ±{error} ns between messages; {checked} bounds, "
            f"which are {width} ns apart at best"
        )


main()
