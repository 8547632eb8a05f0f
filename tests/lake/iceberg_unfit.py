#!/usr/bin/env python3
"""Commits sessions that do not fit to real Iceberg tables: damaged files, columns of another type, tables of
another version. Each is left out by itself. iceberg.py runs it. It needs PyIceberg, no root, and no fathom.
"""

import contextlib
import datetime
import io
import json
import shutil
import sys
import tempfile
from pathlib import Path

import pyarrow
from pyarrow import parquet

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from fathom import FathomError  # noqa: E402
from fathom.iceberg import Partition, Tables, __main__ as committer  # noqa: E402
from fathom.iceberg._lake import UnfitError  # noqa: E402
from fathom.iceberg._round import Change, ConflictError, Stored  # noqa: E402
from pyiceberg.catalog import load_catalog  # noqa: E402
from pyiceberg.exceptions import NoSuchNamespaceError  # noqa: E402

TIMES = pyarrow.array([1, 2], pyarrow.int64())
ROWS = {
    "block": pyarrow.table({"ts_ns": TIMES, "names": [["a"], ["b"]]}),
    "objects": pyarrow.table({"path": ["a"]}),
    "sessions": pyarrow.table({"command": ["c"]}),
}


class Lake:
    def __init__(self, work):
        self.path = work / "lake"
        (work / "warehouse").mkdir()
        self.properties = {"uri": f"sqlite:///{work}/catalog.db", "warehouse": f"file://{work}/warehouse"}

    def ship(self, session, tables, damaged=False):
        """Ships a session as `fathom ship` lays it out; returns its directory."""
        place = f"date=2026-01-01/host=a/session={session}"
        objects = []
        for name, rows in tables.items():
            file = self.path / name / place / "part-00000000.01.parquet"
            file.parent.mkdir(parents=True)
            parquet.write_table(rows, file)
            if damaged and name == "block":
                contents = bytearray(file.read_bytes())
                # The footer, whose length is before the last four bytes.
                length = int.from_bytes(contents[-8:-4], "little")
                contents[-8 - length:-8] = b"\xff" * length
                file.write_bytes(contents)
            objects.append({"table": name, "path": str(file.relative_to(self.path)), "rows": rows.num_rows,
                            "bytes": file.stat().st_size})
        marker = self.path / "_sessions" / place / "session.json"
        marker.parent.mkdir(parents=True)
        marker.write_text(json.dumps({"layout_version": 1, "objects": objects}))
        return place

    def remove(self, place):
        for directory in self.path.glob(f"*/{place}"):
            shutil.rmtree(directory)

    def catalog(self):
        return load_catalog("fathom", **self.properties)

    def round(self):
        """The status of a round, and what it says."""
        words = [word for pair in self.properties.items() for word in ("--property", "=".join(pair))]
        with contextlib.redirect_stderr(io.StringIO()) as said:
            status = committer.main(["--lake", str(self.path), *words])
        return status, said.getvalue()

    def rows(self):
        catalog = self.catalog()
        return {name[-1]: catalog.load_table(name).scan().to_arrow().num_rows for name in catalog.list_tables("fathom")}


def unfit(work):
    lake = Lake(work)
    lake.ship("s1", ROWS)
    reasons = {}
    for number, (reason, block) in enumerate([
        ("long -> string", {"ts_ns": ["x"]}),
        ("unsupported type", {"took": pyarrow.array([datetime.timedelta(1)], pyarrow.duration("ns"))}),
        ("a name has a dot", {"a.b": [1]}),
        ("string -> long", {"session": [1]}),
    ]):
        lake.ship(f"s2{number}", {**ROWS, "block": pyarrow.table(block)})
        reasons[f"s2{number}"] = reason
    lake.ship("s3", ROWS, damaged=True)
    reasons["s3"] = "is damaged"
    # The second of these fits the table as it was, but not with the column of the first.
    lake.ship("s4", {**ROWS, "block": pyarrow.table({"ts_ns": TIMES, "later": [1, 2]})})
    lake.ship("s5", {**ROWS, "block": pyarrow.table({"ts_ns": TIMES, "later": ["x", "y"]})})
    reasons["s5"] = "long -> string"
    # A session that does not fit makes no table.
    lake.ship("s6", {**ROWS, "made": pyarrow.table({"x": [1]}), "block": pyarrow.table({"ts_ns": ["x"]})})
    reasons["s6"] = "long -> string"
    # A table that this version of the package does not know.
    later = lake.ship("s7", {**ROWS, "later": pyarrow.table({"x": [1, 2, 3]})})
    status, said = lake.round()
    skipped = [line for line in said.splitlines() if "skipped" in line]
    assert status == 1 and len(skipped) == len(reasons), said
    for (session, reason), line in zip(reasons.items(), skipped):
        assert f"session {session} of a: " in line and reason in line, line
    assert lake.rows() == {"block": 6, "objects": 3, "sessions": 3, "later": 3}, lake.rows()

    lake.remove(later)
    status, said = lake.round()
    assert "removed session s7 of a" in said, said
    assert lake.rows() == {"block": 4, "objects": 2, "sessions": 2, "later": 0}, lake.rows()

    # A lake that is not mounted.
    (lake.path / "_sessions").rename(work / "away")
    status, said = lake.round()
    assert status == 1 and "mount it" in said, said
    (work / "away").rename(lake.path / "_sessions")
    assert lake.rows() == {"block": 4, "objects": 2, "sessions": 2, "later": 0}, lake.rows()

    # A namespace that is removed during a round.
    def removed(*arguments, **options):
        raise NoSuchNamespaceError("fathom")

    right, committer.commit_round = committer.commit_round, removed
    status, said = lake.round()
    committer.commit_round = right
    assert status == 1 and "run it again" in said, said

    # An empty snapshot of one committer keeps another one, which has loaded the table before, from it.
    slow, fast = (Tables(lake.catalog(), "fathom") for _ in range(2))
    for tables in (slow, fast):
        tables.begin()
        tables.load(["block"])
    file = lake.path / "block" / "date=2026-01-01/host=a/session=s1" / "part-00000000.01.parquet"
    partition = Partition(datetime.date(2026, 1, 1), "a", "s8")
    stored = Stored(f"file://{file}", file.stat().st_size, parquet.read_metadata(file))
    assert fast.equalize("block", {partition: []}, always=True) == Change()
    try:
        slow.equalize("block", {partition: [stored]}, always=False)
    except ConflictError:
        pass
    else:
        raise AssertionError("not refused")
    # Its own snapshots do not.
    assert fast.equalize("block", {partition: [stored]}, always=True) == Change(1, 0, 2)
    raced(lake, work, partition, stored)
    print(f"{len(skipped)} sessions that do not fit were left out")


def raced(lake, work, partition, stored):
    """A table that another program makes, or removes, after an attempt has looked for it."""
    text = work / "text.parquet"
    parquet.write_table(pyarrow.table({"ts_ns": ["x"]}), text)
    slow, fast = (Tables(lake.catalog(), "fathom") for _ in range(2))
    slow.begin()
    slow.load(["flows"])
    fast.admit({"flows": [stored.footer]})
    try:
        slow.admit({"flows": [parquet.read_metadata(text)]})
    except UnfitError as error:
        assert "long -> string" in str(error), error
    else:
        raise AssertionError("fits")
    slow.admit({"flows": [stored.footer]})
    lake.catalog().drop_table("fathom.flows")
    try:
        slow.equalize("flows", {partition: [stored]}, always=False)
    except ConflictError:
        pass
    else:
        raise AssertionError("not there")
    slow.begin()
    slow.load(["flows"])
    try:
        slow.equalize("flows", {partition: [stored]}, always=False)
    except FathomError as error:
        assert "flows is not there" in str(error), error
    else:
        raise AssertionError("not there")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="fathom-iceberg-") as directory:
        unfit(Path(directory))
