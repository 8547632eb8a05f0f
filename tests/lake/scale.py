#!/usr/bin/env python3
"""Ships recordings that were repeated up to many calls to a directory, and measures what one node of DuckDB, ClickHouse
(chDB), and Spark takes for the statements in docs/how-to/ship-sessions.md. Every answer is compared with `fathom query`.

`./do test lake scale` installs what it needs and runs it as root, which recording needs. It needs 3 GB of disk for 100 million calls.
Usage: scale.py [SESSIONS [CALLS [DIRECTORY]]], by default 10 sessions of 100 million calls below /var/tmp. A session is removed as
soon as it is shipped.
"""

import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

from engines import ENGINES, reads
from lake import FATHOM, fathom, ordered, truth, workplace

OPTIONS = sys.argv[1:]
SESSIONS = int(OPTIONS[0]) if OPTIONS else 10
CALLS = int(OPTIONS[1]) if len(OPTIONS) > 1 else 100_000_000
BELOW = OPTIONS[2] if len(OPTIONS) > 2 else "/var/tmp"
SCALE = Path(FATHOM).parent / "fathom-scale"
FIO = ["fio", "--name=mix", "--size=64m", "--rw=randrw", "--bs=4k", "--numjobs=3", "--time_based", "--runtime=2",
       "--fsync=200", "--group_reporting"]


def used(usage):
    return usage.ru_utime + usage.ru_stime


def ship(work, destination, turn):
    """Records, repeats, ships: bytes of the session, rows of the queries, and seconds of shipping by clock and processor."""
    recorded, session = work / "recorded.fathom", work / f"{turn}.fathom"
    subprocess.run([FATHOM, "record", "-q", "-o", recorded, "--", *FIO], cwd=work / "files", check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run([SCALE, "generate", recorded, session, str(CALLS)], check=True, stdout=subprocess.DEVNULL)
    rows = truth([session])
    size = sum(path.stat().st_size for path in session.rglob("*.parquet"))
    began, before = time.monotonic(), used(resource.getrusage(resource.RUSAGE_CHILDREN))
    fathom("ship", session, "--to", destination)
    took = time.monotonic() - began, used(resource.getrusage(resource.RUSAGE_CHILDREN)) - before
    for path in [recorded, session]:
        shutil.rmtree(path)
    return size, rows, took


def tree(pid):
    """Seconds of the processor, and resident MiB, of a process and all below it."""
    parents, used_by = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            own, rest = int(stat.parent.name), stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(rest[1]), []).append(own)
        used_by[own] = (sum(map(int, rest[11:15])) / os.sysconf("SC_CLK_TCK"),
                        int(rest[21]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20))
    seconds, mebibytes, todo = 0, 0, [pid]
    while todo:
        own = todo.pop()
        todo += parents.get(own, [])
        seconds, mebibytes = (a + b for a, b in zip((seconds, mebibytes), used_by.get(own, (0, 0))))
    return seconds, mebibytes


def measured(engine, prefix, expected):
    """Seconds on the clock and of the processor, and the peak of memory."""
    process = multiprocessing.Process(target=reads, args=(engine, expected), kwargs={"lake": prefix})
    began, seconds, mebibytes = time.monotonic(), 0, 0
    process.start()
    while process.is_alive():
        now = tree(process.pid)
        seconds, mebibytes = max(seconds, now[0]), max(mebibytes, now[1])
        process.join(0.2)
    if process.exitcode:
        sys.exit(f"{engine.__name__} ended with {process.exitcode}")
    return time.monotonic() - began, seconds, mebibytes


def main():
    with workplace("scale", BELOW) as work:
        destination = work / "lake"
        expected, size, clock, processor = None, 0, 0, 0
        for turn in range(SESSIONS):
            of_session, rows, took = ship(work, destination, turn)
            size, clock, processor = size + of_session, clock + took[0], processor + took[1]
            if expected is None:
                expected = rows
            else:
                totals = [[a + b for a, b in zip(expected[0][0], rows[0][0])]]
                expected = [totals, *(ordered(a + b) for a, b in zip(expected[1:], rows[1:]))]
            print(f"{turn + 1} of {SESSIONS} sessions: {expected[0][0][2]:,} calls, {size:,} bytes", flush=True)
        print(f"shipped in {clock:.0f} s, {processor:.0f} s of the processor")
        for engine in ENGINES:
            clock, processor, memory = measured(engine, str(destination), expected)
            print(f"{engine.__name__}: {clock:.0f} s, {processor:.0f} s of the processor, at most {memory:.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
