"""The tests of this directory share this file: recordings, the rows that `fathom query` has of them, and comparisons. The statements
are the ones in docs/how-to/ship-sessions.md. FATHOM names another program than target/release/fathom."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/how-to/ship-sessions.md"
FATHOM = str(Path(os.environ.get("FATHOM", ROOT / "target/release/fathom")).resolve())
# The same sums by fathom, per session: the shipped views without percentiles.
TRUTH = [
    "SELECT seen, seen AS accounted, stored, (SELECT count(*) FROM syscalls) AS stored_rows FROM session",
    "SELECT syscall, calls, lost, errors, bytes, total_ns, max_ns FROM by_syscall",
    "SELECT file_id, path, calls, lost, errors, bytes, total_ns, max_ns FROM by_file",
    "SELECT device, op, requests, bytes, device_ns FROM by_device",
]
checked = 0
# Servers end and directories go when a script is stopped.
signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))


@contextlib.contextmanager
def workplace(name, below="/var/tmp"):
    """A directory that is removed at the end, with a directory `files` for programs that are recorded."""
    work = Path(tempfile.mkdtemp(prefix=f"fathom-{name}-", dir=below))
    try:
        (work / "files").mkdir()
        yield work
        if checked:
            print(f"{checked} checks passed")
    finally:
        shutil.rmtree(work)


def check(what, found, expected):
    global checked
    if found != expected:
        missing = [row for row in expected if row not in found][:3]
        surplus = [row for row in found if row not in expected][:3]
        sys.exit(f"{what}: differs; missing {missing}, surplus {surplus}")
    checked += 1
    print(f"  {what}: {len(found)} rows as expected")


def statements(heading):
    """The SQL below a heading of the page."""
    text = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```sql\n(.*?)```", text, re.S)


def each(script):
    """The statements of a script."""
    return [statement.strip().rstrip(";") for statement in script.strip().split(";\n")]


def plain(value):
    if value is None or isinstance(value, str):
        return value
    return int(value)


def ordered(rows):
    return sorted(([plain(v) for v in row] for row in rows), key=lambda row: [str(v) for v in row])


def fathom(*words):
    done = subprocess.run([FATHOM, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"fathom {' '.join(map(str, words))}: {done.stderr}")
    return done


def query(session, sql):
    return json.loads(fathom("query", session, sql, "--format", "json").stdout)


def record(work, name, options, command):
    session = work / f"{name}.fathom"
    fathom("record", "-q", *options, "-o", session, "--", "sh", "-c", f"cd {work}/files && {command}")
    return session


def recorded(work):
    """A whole session, one with counts in place of rows, and one with lost calls."""
    files = "for i in 1 2 3 4 5 6 7 8; do seq 20000 > n$i; sync n$i; cat n$i > m; rm n$i; done; ls /none; true"
    return [
        record(work, "whole", ["--label", "site=a"], files),
        record(work, "counted", ["--rows", "tail"], files),
        # A ring that is too small.
        record(work, "lost", ["--ring-mib", "1", "--syscalls", "all"], "dd if=/dev/zero of=/dev/null bs=1 count=1500000 2> /dev/null"),
    ]


def truth(sessions):
    """Rows of each query over all sessions, with the id of the session in front but for the first."""
    answers = [[] for _ in TRUTH]
    for session in sessions:
        ident = query(session, "SELECT id FROM session")[0]["id"]
        for answer, sql in zip(answers, TRUTH):
            answer += [[ident, *row.values()] for row in query(session, sql)]
    totals = [sum(int(row[i]) for row in answers[0]) for i in range(1, 5)]
    texts = {0, 1, 2}
    rows = [[[v if i in texts and not str(v).isdigit() else plain(v) for i, v in enumerate(row)] for row in answer]
            for answer in answers[1:]]
    return [[totals], *map(ordered, rows), fired(sessions)]


def fired(sessions):
    """Hosts and rules of the findings: sessions, findings, and the cost."""
    sums = {}
    for session in sessions:
        host = query(session, "SELECT host FROM session")[0]["host"]
        for row in query(session, "SELECT rule, count(*) AS findings, coalesce(sum(cost_ns), 0)::BIGINT AS cost FROM findings GROUP BY rule"):
            total = sums.setdefault((host, row["rule"]), [0, 0, 0])
            for place, value in enumerate([1, row["findings"], row["cost"]]):
                total[place] += int(value)
    return ordered([*key, *total] for key, total in sums.items())


def compare(engine, run, expected):
    for sql, rows, name in zip(statements("Queries"), expected, ["identity", "by_syscall", "by_file", "by_device", "findings"]):
        check(f"{engine}, {name}", ordered(run(sql)), rows)
