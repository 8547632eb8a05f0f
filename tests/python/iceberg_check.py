"""Checks the rounds of the committer of Iceberg tables on a lake and tables in memory: killed at each
of its steps, with another committer in between, with sessions that are replaced, removed, or damaged.
tests/lake/iceberg.py runs it on real tables, which need PyIceberg.
"""

import contextlib
import datetime
import io
import itertools
import json
import random

from fathom.iceberg import Partition, commit_round
from fathom.iceberg._lake import Listed, Object, UnfitError, location_of, objects_of
from fathom.iceberg._round import Change, ConflictError, Stored
from fathom.iceberg.__main__ import main

LOCATION = "s3://bucket/lake"
TABLES = ["block", "syscalls", "waits", "objects", "sessions"]


class Killed(Exception):
    pass


class Lake:
    location = LOCATION

    def __init__(self):
        self.markers = {}
        self.there = {}

    def ship(self, number, version, day=1):
        """Ships a version of a session, in place of another version."""
        partition = Partition(datetime.date(2026, 1, day), f"host{number % 2}", f"s{number}")
        directory = f"date=2026-01-{day:02}/host=host{number % 2}/session=s{number}"
        self.remove(partition)
        objects = []
        for place, table in enumerate(TABLES):
            # The row of table sessions is the same in each version, and table waits is empty.
            name = f"part-00000000.{0 if table == 'sessions' else version:016x}.parquet"
            rows = {"waits": 0, "sessions": 1}.get(table, 10 + place)
            objects.append(Object(table, f"{table}/{directory}/{name}", 100, rows))
        self.there[partition] = objects
        self.markers[partition] = objects
        return partition

    def remove(self, partition):
        self.there.pop(partition, None)
        self.markers.pop(partition, None)

    def relative(self, location):
        path = location.removeprefix(f"{LOCATION}/")
        return None if path == location else path

    def sessions(self, since):
        listed = {}
        for partition, objects in self.there.items():
            if since and partition.date < since:
                continue
            paths = {one.path for one in objects if one.table in ("objects", "sessions")}
            directory = objects[0].path.split("/", 1)[1].rpartition("/")[0]
            listed[partition] = Listed(directory, partition in self.markers, paths)
        return listed

    def objects(self, session):
        for partition, objects in self.markers.items():
            if objects[0].path.split("/", 1)[1].startswith(f"{session.directory}/"):
                return objects
        raise UnfitError("no marker")

    def footer(self, one):
        if any(one in objects for objects in self.there.values()):
            return one
        raise UnfitError(f"{one.path} is not there")

    def wanted(self):
        """Locations and rows by table and session."""
        return {
            table: {
                partition: {f"{LOCATION}/{one.path}": one.rows for one in objects
                            if one.table == table and one.rows}
                for partition, objects in self.markers.items()
            }
            for table in TABLES
        }


class Tables:
    def __init__(self):
        self.tables = {}
        self.versions = {}
        self.steps = 0
        self.kill_at = None
        self.before_commit = lambda table: None
        self.sessions_seen = []

    def names(self):
        return set(self.tables)

    def files(self, table, since):
        return {partition: set(files) for partition, files in self.tables.get(table, {}).items()
                if files and not (since and partition.date < since)}

    def create(self, table, footer):
        self._step()
        self.tables.setdefault(table, {})

    def equalize(self, table, wanted):
        version = self.versions.get(table, 0)
        there = self.tables[table]
        self.before_commit(table)
        self._step()
        if self.versions.get(table, 0) != version:
            raise ConflictError
        added = dropped = rows = 0
        for partition, files in wanted.items():
            now = {one.location: one.footer.rows for one in files}
            before = there.get(partition, {})
            added += len(now.keys() - before.keys())
            dropped += len(before.keys() - now.keys())
            rows += sum(now[one] for one in now.keys() - before.keys())
            there[partition] = now
        if added or dropped:
            self.versions[table] = version + 1
        if table == "sessions":
            # A session that is visible is whole.
            for partition, files in there.items():
                if files:
                    for other in set(self.tables) - {"sessions", "waits"}:
                        assert self.tables[other].get(partition), (partition, other)
        return Change(added, dropped, rows)

    def _step(self):
        self.steps += 1
        if self.steps == self.kill_at:
            raise Killed

    def contents(self):
        return {table: {partition: files for partition, files in
                        self.tables.get(table, {}).items() if files} for table in TABLES}


def same(tables, lake):
    wanted = {table: {partition: files for partition, files in sessions.items() if files}
              for table, sessions in lake.wanted().items()}
    assert tables.contents() == wanted, (tables.contents(), wanted)


def finish(lake, tables, **options):
    tables.kill_at = None
    while commit_round(lake, tables, **options).left:
        pass


# A round, and a second one without work.
lake, tables = Lake(), Tables()
shipped = [lake.ship(number, 1) for number in range(3)]
done = commit_round(lake, tables)
assert done.sessions == sorted(shipped, key=lambda one: (one.host, one.session)), done
assert (done.files, done.rows, done.tables, done.removed) == (12, 3 * (10 + 11 + 13 + 1), 4, [])
same(tables, lake)
before = dict(tables.versions)
done = commit_round(lake, tables)
assert (done.sessions, done.tables, tables.versions) == ([], 0, before)

# Several rounds of few sessions; the oldest first.
lake, tables = Lake(), Tables()
for number, day in enumerate([3, 1, 2]):
    lake.ship(number, 1, day)
days = []
for left in (2, 1, 0):
    done = commit_round(lake, tables, at_most=1)
    days += [partition.date.day for partition in done.sessions]
    assert done.left == left
assert days == [1, 2, 3]

# Sessions before `since` are neither added nor removed.
since = datetime.date(2026, 1, 2)
lake.remove(Partition(datetime.date(2026, 1, 1), "host1", "s1"))
lake.ship(7, 1, 1)
done = commit_round(lake, tables, since=since)
assert (done.sessions, done.removed) == ([], [])

# Killed at each step: of a first round, and of one with replaced, removed, and new sessions.
killed = 0
for change, second in itertools.product([False, True], [False, True]):
    for step in itertools.count(1):
        lake, tables = Lake(), Tables()
        for number in range(3):
            lake.ship(number, 1)
        if change:
            finish(lake, tables)
            lake.ship(0, 2)
            lake.remove(Partition(datetime.date(2026, 1, 1), "host1", "s1"))
            lake.ship(3, 1)
        tables.steps, tables.kill_at = 0, step
        try:
            commit_round(lake, tables)
            break
        except Killed:
            killed += 1
        if second:
            # The lake changes before the next round.
            lake.remove(Partition(datetime.date(2026, 1, 1), "host0", "s2"))
            lake.ship(0, 3)
        finish(lake, tables)
        same(tables, lake)
assert killed == 32, killed

# Another committer, at random steps of the first one.
for seed in range(200):
    chance = random.Random(seed)
    lake, tables = Lake(), Tables()
    for number in range(4):
        lake.ship(number, 1)
    if chance.random() < 0.5:
        finish(lake, tables)
        lake.ship(0, 2)
        lake.ship(5, 1)
        lake.remove(Partition(datetime.date(2026, 1, 1), "host1", "s1"))

    def other(table, tables=tables, lake=lake, chance=chance):
        if chance.random() < 0.3:
            tables.before_commit = lambda table: None
            commit_round(lake, tables, at_most=chance.randint(1, 4))

    tables.before_commit = other
    done = commit_round(lake, tables)
    finish(lake, tables)
    same(tables, lake)

# Files that an engine has rewritten are kept while their session is in the lake.
lake, tables = Lake(), Tables()
partition = lake.ship(0, 1)
finish(lake, tables)
for table in ("syscalls", "objects", "sessions"):
    tables.tables[table][partition] = {f"s3://warehouse/{table}/merged.parquet": 11}
before = tables.contents()
assert commit_round(lake, tables).sessions == []
assert tables.contents() == before
# The row in table sessions is from the lake, and the session is replaced there: all files are.
tables.tables["sessions"][partition] = {f"{LOCATION}/{lake.markers[partition][-1].path}": 1}
tables.tables["objects"][partition] = {f"{LOCATION}/{lake.markers[partition][-2].path}": 13}
lake.ship(0, 2)
assert commit_round(lake, tables).sessions == [partition]
same(tables, lake)

# A session whose object is missing is left out, others are added; a replacement of such removes the old one.
lake, tables = Lake(), Tables()
for number in range(3):
    lake.ship(number, 1)
finish(lake, tables)
broken = lake.ship(1, 2)
lake.there[broken] = [one for one in lake.there[broken] if one.table != "syscalls"]
added = lake.ship(4, 1)
done = commit_round(lake, tables)
assert done.sessions == [added] and done.removed == [broken], done
assert list(done.skipped) == [broken] and "syscalls/" in done.skipped[broken]
assert broken not in tables.contents()["syscalls"] and broken not in tables.contents()["sessions"]

# Partitions: hosts as they were, whatever their names are.
day = datetime.date(2026, 1, 31)
for text, host in [("db-1", "db-1"), ("..%2F..%2Fetc", "../../etc"), ("%C3%BC", "ü"), ("a%3Db%0A", "a=b\n"),
                   ("__HIVE_DEFAULT_PARTITION__", None)]:
    assert Partition.of(f"date=2026-01-31/host={text}/session=01ab") == Partition(day, host, "01ab")
for wrong in ["date=2026-02-31/host=a/session=b", "date=x/host=a/session=b", "host=a/session=b",
              "date=2026-01-31/host=a/b/session=c", "x/date=2026-01-31/host=a/session=b"]:
    assert Partition.of(wrong) is None, wrong

# Markers: only objects of their own session.
place = "date=2026-01-31/host=a/session=b"


def marker(*paths, version=1):
    objects = [{"table": path.split("/")[0], "path": path, "bytes": 1, "rows": 2} for path in paths]
    return json.dumps({"layout_version": version, "objects": objects}).encode()


row = f"sessions/{place}/part-00000000.0f.parquet"
assert objects_of(marker(row), place) == [Object("sessions", row, 1, 2)]
for contents, reason in [
    (b"{", "damaged"), (b"[" * 100_000, "damaged"), (b"[]", "damaged"), (b"{}", "damaged"), (marker(row, version=2), "version 2"),
    (marker(), "no row"), (marker(row, row), "no row"),
    (marker(row, f"sessions/{place}/../part-0.0.parquet"), "another place"),
    (marker(row, f"files/{place}x/part-0.0.parquet"), "another place"),
    (marker(row, f"files/{place}/x.parquet"), "another place"),
    (marker(row, f"../{place}/part-0.0.parquet"), "another place"),
    (marker(row, *[f"files/{place}/part-0.0.parquet"] * 2), "twice"),
]:
    try:
        objects_of(contents, place)
    except UnfitError as error:
        assert reason in str(error), error
    else:
        raise AssertionError(contents)
assert location_of("s3://bucket/lake/") == "s3://bucket/lake"

# Wrong arguments.
for words in [[], ["--lake", "/none", "--property", "x"], ["--lake", "/none", "--days", "0"],
              ["--lake", "/none", "--every", "soon"]]:
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            main(words)
    except SystemExit as error:
        assert error.code == 2, words
    else:
        raise AssertionError(words)
print(f"rounds are whole after {killed} kills and with other committers")
