"""Checks the sets of two machines: check.py FATHOM DIRECTORY.

DIRECTORY has a directory for each machine. Besides its sessions that has what programs measured without fathom: in
`bounds` what clock.c has, lines "own-ns other-ns", which say that the other clock shows at least the second when the
own one shows the first; in ROUND.posts begin and end of each post of the client; in ROUND.syncs how long the disk took
the server each time; and in `disk` the name of that disk.
"""

import bisect
import concurrent.futures
import json
import subprocess
import sys

FATHOM, DIRECTORY = sys.argv[1:]
# By how much the rate of the server's clock changes again and again: by what the kernel corrects a clock, and by
# the length of a tick.
ROUNDS = {"frequency": 900e-6, "tick": 0.04}
# Of so many of the slowest posts the path is looked at.
PATHS = 3


def fathom(*arguments):
    done = subprocess.run([FATHOM, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def rows(where, sql):
    return json.loads(fathom("query", where, sql, "--format", "json"))


def numbers(machine, name):
    with open(f"{DIRECTORY}/{machine}/{name}", encoding="ascii") as lines:
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


class Truth:
    """What the memory of both says of their clocks: when db's clock shows the first, web's shows at least, or at most,
    the second."""

    def __init__(self):
        self.least = numbers("db", "bounds")
        self.most = [(other, own) for own, other in numbers("web", "bounds")]

    def near(self, at):
        """The best bounds of web's clock minus db's near a time of db's, each with its time; None without them."""
        least, most = (
            [(there - own, own) for own, there in bounds if abs(own - at) < 30_000_000]
            for bounds in (self.least, self.most)
        )
        return (max(least), min(most)) if least and most else None

    def change(self, begin, end):
        """By how much the rate of the clocks has changed at least between two times of db's clock."""
        lowest, highest = 1.0, -1.0
        step, length = 50_000_000, 800_000_000
        found = [self.near(at) for at in range(begin, end, step)]
        for before, after in zip(found, found[length // step :]):
            if before and after:
                (least, at_least), (most, at_most) = after[0], before[1]
                highest = max(highest, (least - most) / (at_least - at_most))
                (most, at_most), (least, at_least) = after[1], before[0]
                lowest = min(lowest, (most - least) / (at_most - at_least))
        return highest - lowest

    def widths(self, begin, end, change):
        """How far bounds within a millisecond are apart, between two times of db's clock; in order."""
        most = sorted(self.most)
        widths = []
        for at, there in self.least:
            after = bisect.bisect(most, (at, 0))
            near = [(abs(own - at), own, other) for own, other in most[max(0, after - 1) : after + 1]]
            if begin <= at <= end and near and min(near)[0] < 1_000_000:
                far, own, other = min(near)
                widths.append((other - own) - (there - at) + change * far)
        return sorted(widths)


def lasted(machine, name):
    """The begin and end of a recording, on its own clock."""
    with open(f"{DIRECTORY}/{machine}/{name}.fathom/session.json", encoding="utf-8") as file:
        clock = json.load(file)["clock"]
    return clock["start_monotonic_ns"], clock["end_monotonic_ns"]


def check_clocks(truth, path, summary, name, change):
    """The relation against bounds that fathom did not make, while any of the recordings lasts."""
    with open(path, encoding="utf-8") as file:
        clock = json.load(file)["members"][1]["clock"]
    relation = Map(clock)
    member = summary["members"][1]
    (begin, end), (there_begin, there_end) = lasted("db", name), lasted("web", name)
    answers = "SELECT min(ts_ns) AS a, max(ts_ns) AS b FROM syscalls WHERE syscall = 'sendto'"
    answers = rows(f"{DIRECTORY}/db/{name}.fathom", answers)[0]
    first, last = answers["a"], answers["b"]
    worst = worst_inside = 0
    checked = [0, 0]
    for kind, sign, bounds in ((0, -1, truth.least), (1, 1, truth.most)):
        for at, there in bounds:
            if begin <= at <= end or there_begin <= there <= there_end:
                shown = relation.apply(at)
                off = (shown - there) * sign
                assert off <= relation.error(shown), (at, there, shown)
                worst = max(worst, off)
                checked[kind] += 1
                if first <= at <= last:
                    assert off <= member["error_in_messages_ns"], (at, there, shown)
                    worst_inside = max(worst_inside, off)
    assert min(checked) > 100, checked
    # The rate has changed between the messages.
    changed = truth.change(first, last)
    assert changed > change / 3, f"the rate has changed by {changed} only"
    widths = truth.widths(first, last, change)
    width = widths[len(widths) // 2] if widths else float("inf")
    return (
        f"off by {worst} ns at most, ±{member['error_ns']} ns are stated; between messages by {worst_inside} ns, "
        f"±{member['error_in_messages_ns']} ns are stated; {sum(checked)} bounds, of {len(widths)} pairs between "
        f"messages half are within {width:.0f} ns; the rate changed by {changed:.6f}"
    )


def check_messages(path, summary):
    for traffic in summary["traffic"]:
        assert traffic["before_sent"] == 0, traffic
        assert traffic["messages"] > 100, traffic
    assert len(summary["traffic"]) == 2, summary["traffic"]
    # The first byte of each request and answer, by its position in its stream.
    found = rows(
        path,
        """WITH ends AS (SELECT * FROM flows WHERE protocol = 'tcp' AND 7000 IN (local_port, remote_port)),
        calls AS (SELECT s.* FROM syscalls s JOIN ends USING (host, file_id) WHERE s.bytes > 0)
        SELECT s.host, count(*) AS n, count(*) FILTER (r.ts_ns + r.dur_ns < s.ts_ns) AS early
        FROM calls s JOIN calls r ON s.host <> r.host AND s.syscall = 'sendto' AND r.syscall = 'recvfrom'
            AND s.file_offset BETWEEN r.file_offset AND r.file_offset + r.bytes - 1
        GROUP BY s.host""",
    )
    assert {row["host"] for row in found} == {"web", "db"}, found
    assert all(row["n"] > 100 and row["early"] == 0 for row in found), found


def check_paths(path, name):
    """From the client's wait in a web request to the queue of the server's disk."""
    with open(f"{DIRECTORY}/db/disk", encoding="ascii") as line:
        disk = line.read().strip()
    posts = numbers("web", f"{name}.posts")
    synced = [took for (took,) in numbers("db", f"{name}.syncs")]
    syncs = "SELECT rid FROM syscalls WHERE syscall = 'fdatasync' ORDER BY ts_ns"
    syncs = [row["rid"] for row in rows(f"{DIRECTORY}/db/{name}.fathom", syncs)]
    assert len(syncs) == len(synced) == len(posts)
    # With a time-out the client waits in poll, and receives then.
    waits = "SELECT rid, ts_ns, dur_ns FROM syscalls WHERE syscall IN ('poll', 'recvfrom')"
    waits = rows(f"{DIRECTORY}/web/{name}.fathom", waits)
    slowest = sorted(range(len(posts)), key=lambda post: posts[post][0] - posts[post][1])[:PATHS]
    total, parts = 0, {"queue": 0, "device": 0}
    for number in slowest:
        begin, end = posts[number]
        inside = [wait for wait in waits if begin <= wait["ts_ns"] and wait["ts_ns"] + wait["dur_ns"] <= end]
        wait = max(inside, key=lambda wait: wait["dur_ns"])
        found = fathom("critical-path", path, "--request", f"web:{wait['rid']}", "--format", "json")
        found = json.loads(found)
        assert (found["host"], found["rid"]) == ("web", wait["rid"])
        segments = found["segments"]
        assert sum(segment["dur_ns"] for segment in segments) == found["dur_ns"] == wait["dur_ns"]
        for before, after in zip(segments, segments[1:]):
            assert before["ts_ns"] + before["dur_ns"] == after["ts_ns"]
        assert segments[-1]["host"] == "web"
        # It leads through the server's call for this post and no other, for as long as the server measured.
        there = [s for s in segments if s["host"] == "db" and s["syscall"] == "fdatasync"]
        assert {segment["rid"] for segment in there} == {syncs[number]}, (number, segments)
        [clock] = found["clocks"]
        assert clock["host"] == "db" and clock["error_ns"] > 0, clock
        took = sum(segment["dur_ns"] for segment in there)
        off = took - synced[number]
        assert -synced[number] / 4 < off + 2 * clock["error_ns"], (took, synced[number], clock)
        assert off < 2 * clock["error_ns"], (took, synced[number], clock)
        waited = [segment for segment in there if segment["block"]]
        assert {segment["block"]["device"] for segment in waited} == {disk}, waited
        for segment in waited:
            if segment["block"]["part"] in parts:
                parts[segment["block"]["part"]] += segment["dur_ns"]
        total += took
    # The disk takes 4 requests at a time, so most of the 12 of others were before the server's in its queue.
    assert parts["queue"] > parts["device"] > 0 and sum(parts.values()) > total / 2, (parts, total)
    why = " ".join(fathom("why", path, "--request", f"db:{syncs[slowest[0]]}").split())
    assert f"queue of {disk}" in why and " of dd" in why, why
    return f"{PATHS} paths: {parts['queue'] / total:.0%} of the time of fdatasync in the queue of {disk}"


def check_round(truth, name):
    sessions = [f"{DIRECTORY}/{machine}/{name}.fathom" for machine in ("web", "db")]
    path = f"{DIRECTORY}/{name}.fset"
    summary = json.loads(fathom("set", *sessions, "-o", path, "--force", "--format", "json"))
    assert [member["host"] for member in summary["members"]] == ["web", "db"]
    assert summary["members"][1]["clock"] == "messages", summary
    clocks = check_clocks(truth, path, summary, name, ROUNDS[name])
    check_messages(path, summary)
    paths = check_paths(path, name)
    return f"{name}: {clocks}; {paths}"


def main():
    truth = Truth()
    with concurrent.futures.ThreadPoolExecutor() as both:
        for words in both.map(lambda name: check_round(truth, name), ROUNDS):
            print(words)


main()
