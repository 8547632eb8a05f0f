"""Checks the Python package `fathom`: records a block with it, and compares every table that it
reads with the answer of `fathom query`. Prints what was skipped.

    package_check.py DIRECTORY
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import fathom
from fathom._schema import TABLES, VIEWS

directory = Path(sys.argv[1])
data = directory / "data"
data.mkdir()


def write(name, count):
    with open(data / name, "wb", buffering=0) as file:
        for _ in range(count):
            file.write(b"x" * 512)


# A block, with a child; not before it and not after it.
write("before", 3)
out = directory / "block [1]'s.fathom"
with fathom.record(out, syscalls=["storage"], layers="all") as recording:
    write("inside", 7)
    script = f"open({str(data / 'child')!r}, 'wb', buffering=0).write(b'y' * 100)"
    subprocess.run([sys.executable, "-c", script], check=True)
    fd = os.open(data / "inside", os.O_RDWR)
    os.pwrite(fd, b"z", 5)
    os.fsync(fd)
    os.close(fd)
    assert recording.session.is_running
write("after", 3)

session = recording.session
assert not session.is_running
written = dict(
    session.sql(
        "SELECT parse_filename(path), sum(bytes)::BIGINT FROM syscalls "
        "WHERE syscall IN ('write', 'pwrite64') AND starts_with(path, ?) GROUP BY ALL",
        [str(data) + "/"],
    ).fetchall()
)
assert written == {"inside": 7 * 512 + 1, "child": 100}, written
assert session.meta["state"] == "complete"
totals = session.meta["totals"]
assert totals["lost"] == 0 and totals["stored"] == session.syscalls.count("*").fetchall()[0][0]

# Every table is what `fathom query` says it is. Rows of key and columns with it.
filled = 0


def same(name, session):
    ours, theirs = session.table(name), session.query(f'FROM "{name}"')
    assert ours.columns == theirs.columns, (name, ours.columns, theirs.columns)
    assert ours.types == theirs.types, (name, ours.types, theirs.types)
    for left, right in ((ours, theirs), (theirs, ours)):
        extra = left.except_(right).fetchall()
        assert not extra, (name, extra[:3])
    count = ours.count("*").fetchall()[0][0]
    assert count == theirs.count("*").fetchall()[0][0], name
    return count


for name in TABLES:
    filled += same(name, session) > 0
assert {"slices", "files", "processes", "syscalls"} <= {
    name for name in TABLES if session.table(name).count("*").fetchall()[0][0]
}
print(f"{filled} of {len(TABLES)} tables have rows; all are as fathom query has them")

# Parts that a merge replaced do not count.
stale = directory / "stale.fathom"
shutil.copytree(out, stale)
part = next((stale / "syscalls").glob("part-*-*.parquet"), None)
if part is None:
    part = next((stale / "syscalls").glob("part-*.parquet"))
    number = int(part.stem.removeprefix("part-"))
    merged = part.with_name(f"part-{number:08}-{number + 1:08}.parquet")
    shutil.copy(part, merged)
else:
    shutil.copy(part, part.with_name(f"{'-'.join(part.stem.split('-')[:2])}.parquet"))
assert len(list((stale / "syscalls").iterdir())) > len(list((out / "syscalls").iterdir()))
assert fathom.open(stale).syscalls.count("*").fetchall() == session.syscalls.count("*").fetchall()

# Views by name, alone and in SQL.
for name in VIEWS:
    assert session.table(name).columns, name
assert session.by_syscall().sum("calls").fetchall()[0][0] == totals["stored"]
(calls,) = session.sql(
    "SELECT sum(f.calls)::BIGINT FROM by_file f JOIN files USING (file_id)"
).fetchall()[0]
assert calls and calls <= totals["stored"]
frame = session.by_file().df()
assert len(frame) and "total_ns" in frame.columns
assert len(session.query("SELECT wall_time(ts_ns) FROM syscalls LIMIT 2").fetchall()) == 2

try:
    import pyarrow  # noqa: F401
except ImportError:
    print("skipped: .arrow() and .pl() need pyarrow, which is not installed")
else:
    assert session.syscalls.arrow().read_all().num_rows == totals["stored"]
    assert len(session.syscalls.pl()) == totals["stored"]

# The program's answers.
report = fathom.report(out)
assert report and isinstance(fathom.diagnose(out)["findings"], list)
assert session.latency_plot().lines
assert session.throughput_plot().lines


# Errors are exceptions with a message that says what to do.
def refused(action, *words):
    try:
        action()
    except fathom.FathomError as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError(f"{words}: no error")


def record_over():
    with fathom.record(out):
        raise AssertionError("the block ran without a recording")


refused(record_over, "not empty")
refused(lambda: fathom.open(directory / "missing"), "is not a session")
refused(lambda: fathom.report(directory / "missing"), "missing")
refused(lambda: session.query("SELECT nonsense"), "nonsense")
damaged = directory / "damaged.fathom"
damaged.mkdir()
(damaged / "session.json").write_text("{")
refused(lambda: fathom.open(damaged), "fathom repair")
os.environ["FATHOM"] = str(directory / "no program")
refused(lambda: fathom.report(out), "cannot run")

# An exception in the block is the block's, and ends the recording.
os.environ["FATHOM"] = sys.argv[2]
try:
    with fathom.record(directory / "failed.fathom") as recording:
        raise KeyError("the block's own")
except KeyError:
    assert recording.session.meta["state"] == "complete"
else:
    raise AssertionError("the exception is gone")

# The notebook: its code cells in order, as plain Python.
import json

from matplotlib import pyplot

notebook = Path(fathom.__file__).parents[1] / "examples" / "session.ipynb"
cells = [c for c in json.loads(notebook.read_text())["cells"] if c["cell_type"] == "code"]
assert len(cells) > 3
os.chdir(directory)
names = {"__name__": "__main__"}
for number, cell in enumerate(cells):
    exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
assert pyplot.get_fignums()
print(f"{len(cells)} cells of the notebook run")
