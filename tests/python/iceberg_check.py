"""Checks the rounds of the committer of Iceberg tables on a lake and tables in memory: killed at each
of its steps, with other committers at the same time, with sessions that are replaced, removed, or damaged.
tests/lake/iceberg.py runs it on real tables, which need PyIceberg.
"""

import contextlib
import datetime
import io
import itertools
import json
import random
import tempfile
import threading
import types

from fathom import FathomError
from fathom.iceberg import Partition, commit_round
from fathom.iceberg import Lake as RealLake, UsageError, _round
from fathom.iceberg._lake import Listed, Object, UnfitError, location_of, objects_of
from fathom.iceberg._round import Change, ConflictError, Round
from fathom.iceberg.__main__ import _report, main

# A round waits after a conflict.
_round.time = types.SimpleNamespace(sleep=lambda seconds: None)

LOCATION = "s3://bucket/lake"
TABLES = ["block", "syscalls", "waits", "objects", "sessions"]


class Killed(Exception):
    pass


class Lake:
    location = LOCATION

    def __init__(self):
        self.markers = {}
        self.there = {}
        self.mounted = True
        # Files of each version by table.
        self.versions = {}

    def ship(self, number, version, day=1, without=()):
        """Ships a version of a session, in place of another version; without rows in some tables."""
        partition = Partition(datetime.date(2026, 1, day), f"host{number % 2}", f"s{number}")
        directory = f"date=2026-01-{day:02}/host=host{number % 2}/session=s{number}"
        self.remove(partition)
        objects = []
        for place, table in enumerate(TABLES):
            # The row of table sessions is the same in each version, and table waits is empty.
            name = f"part-00000000.{0 if table == 'sessions' else version:016x}.parquet"
            rows = 0 if table in without else {"waits": 0, "sessions": 1}.get(table, 10 + place)
            objects.append(Object(table, f"{table}/{directory}/{name}", 100, rows))
        self.there[partition] = objects
        self.markers[partition] = objects
        self.versions.setdefault(partition, []).append(
            {one.table: {f"{LOCATION}/{one.path}": one.rows} for one in objects if one.rows})
        return partition

    def remove(self, partition):
        self.there.pop(partition, None)
        self.markers.pop(partition, None)

    def relative(self, location):
        path = location.removeprefix(f"{LOCATION}/")
        return None if path == location else path

    def is_there(self):
        return self.mounted

    def sessions(self, since):
        if not self.mounted:
            return {}
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
    """The tables as one committer sees them."""

    def __init__(self, lake, catalog=None):
        self.lake = lake
        # Of all committers: files by table and session, and how often a table has changed.
        self.tables, self.versions = catalog or ({}, {})
        self.loaded = {}
        self.steps = 0
        self.kill_at = None
        self.before_step = lambda: None
        # Tables whose columns do not fit.
        self.unfit = set()

    def beside(self):
        """The same tables, for another committer."""
        return Tables(self.lake, (self.tables, self.versions))

    def begin(self):
        self.loaded = {}

    def load(self, names):
        for table in names:
            if table not in self.loaded:
                self._step()
                self.loaded[table] = self.versions.get(table, 0) if table in self.tables else None

    def names(self):
        self._step()
        return set(self.tables)

    def files(self, table, since):
        self.load([table])
        return {partition: set(files) for partition, files in self.tables.get(table, {}).items()
                if files and not (since and partition.date < since)}

    def admit(self, footers):
        self.load(footers)
        if any((one.table, one.path.rpartition("/")[0]) in self.unfit for files in footers.values() for one in files):
            raise UnfitError("columns")
        for table in footers:
            if self.loaded[table] is None:
                self._step()
                self.tables.setdefault(table, {})
                del self.loaded[table]
                self.load([table])
                if self.loaded[table]:
                    raise ConflictError

    def equalize(self, table, wanted, *, always):
        if self.loaded[table] is None:
            assert not any(wanted.values()), table
            return Change()
        there = self.tables[table]
        self._step()
        added = dropped = rows = 0
        for partition, files in wanted.items():
            now = {one.location: one.footer.rows for one in files}
            before = there.get(partition, {})
            added += len(now.keys() - before.keys())
            dropped += len(before.keys() - now.keys())
            rows += sum(now[one] for one in now.keys() - before.keys())
        if not added and not dropped and not always:
            return Change()
        if self.versions.get(table, 0) != self.loaded[table]:
            raise ConflictError
        for partition, files in wanted.items():
            there[partition] = {one.location: one.footer.rows for one in files}
        self.versions[table] = self.loaded[table] = self.loaded[table] + 1
        self.whole()
        return Change(added, dropped, rows)

    def whole(self):
        """A session that is visible has the files of one of its versions."""
        for partition, files in self.tables.get("sessions", {}).items():
            if files:
                there = {table: sessions[partition] for table, sessions in self.tables.items() if sessions.get(partition)}
                assert there in self.lake.versions[partition], (partition, there)

    def _step(self):
        self.before_step()
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
lake = Lake()
tables = Tables(lake)
shipped = [lake.ship(number, 1) for number in range(3)]
done = commit_round(lake, tables)
assert done.sessions == sorted(shipped, key=lambda one: (one.host, one.session)), done
assert (done.files, done.rows, done.tables, done.removed) == (12, 3 * (10 + 11 + 13 + 1), 4, [])
same(tables, lake)
before = dict(tables.versions)
done = commit_round(lake, tables)
assert (done.sessions, done.tables, tables.versions) == ([], 0, before)

# Several rounds of few sessions; the oldest first.
lake = Lake()
tables = Tables(lake)
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

# Killed at each step: of a first round, and of one with replaced, removed, and new sessions. The new version
# of a session has no rows in a table in which the old one has some.
killed = 0
for change, second in itertools.product([False, True], [False, True]):
    for step in itertools.count(1):
        lake = Lake()
        tables = Tables(lake)
        for number in range(3):
            lake.ship(number, 1)
        if change:
            finish(lake, tables)
            lake.ship(0, 2, without=["block"])
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
            lake.ship(0, 3, without=["syscalls"])
        finish(lake, tables)
        same(tables, lake)
assert killed == 66, killed

# A conflict in the middle of a replacement, on the table that the new version lacks.
lake = Lake()
tables = Tables(lake)
partition = lake.ship(0, 1)
finish(lake, tables)
lake.ship(0, 2, without=["block"])


def conflict():
    if tables.tables["objects"][partition] == lake.versions[partition][1]["objects"]:
        tables.versions["block"] += 1
        tables.before_step = lambda: None


tables.before_step = conflict
assert commit_round(lake, tables).sessions == [partition]
same(tables, lake)


class Turns:
    """Programs that run at the same time: one goes on at each step, chosen by chance."""

    def __init__(self, chance):
        self.chance = chance
        self.waiting = {}
        self.back = threading.Semaphore(0)
        self.errors = []

    def start(self, name, work):
        go = self.waiting[name] = threading.Semaphore(0)

        def run():
            go.acquire()
            try:
                work()
            except (Killed, FathomError):
                pass
            except BaseException as error:
                self.errors.append(error)
            del self.waiting[name]
            self.back.release()

        threading.Thread(target=run, daemon=True).start()

    def step(self, name):
        self.back.release()
        self.waiting[name].acquire()

    def run(self, between):
        while self.waiting and not self.errors:
            between()
            self.waiting[self.chance.choice(sorted(self.waiting))].release()
            self.back.acquire()
        if self.errors:
            raise self.errors[0]


# Committers at the same time, some of which are killed, while the lake changes.
for seed in range(200):
    chance = random.Random(seed)
    lake = Lake()
    tables = Tables(lake)
    hidden = {}
    version = itertools.count(2)
    for number in range(3):
        lake.ship(number, 1)
    if chance.random() < 0.7:
        finish(lake, tables)

    def change(chance=chance, lake=lake, hidden=hidden, version=version, changes=chance.choice([0, 0.1, 0.3])):
        if chance.random() > changes:
            return
        what, number = chance.random(), chance.randrange(3)
        partition = Partition(datetime.date(2026, 1, 1), f"host{number % 2}", f"s{number}")
        if what < 0.4:
            hidden.pop(partition, None)
            lake.ship(number, next(version), without=chance.sample(["block", "syscalls"], chance.randrange(3)))
        elif what < 0.7 and partition in lake.markers:
            # Its marker is removed first.
            hidden[partition] = lake.markers.pop(partition)
            if chance.random() < 0.7:
                del lake.there[partition]
        elif hidden:
            # The same version is shipped again.
            partition, objects = hidden.popitem()
            lake.there[partition] = lake.markers[partition] = objects

    turns = Turns(chance)
    for name in range(chance.choice([2, 2, 3])):
        mine = tables.beside()
        mine.kill_at = chance.choice([None, chance.randint(1, 40)])
        mine.before_step = lambda name=name, turns=turns: turns.step(name)
        most = chance.randint(1, 4)
        turns.start(name, lambda mine=mine, lake=lake, most=most: [commit_round(lake, mine, at_most=most) for _ in range(3)])
    turns.run(change)
    finish(lake, tables)
    same(tables, lake)

# A lake that is not mounted: no session is removed.
lake = Lake()
tables = Tables(lake)
lake.ship(0, 1)
finish(lake, tables)
before = tables.contents()
lake.mounted = False
try:
    commit_round(lake, tables)
except FathomError as error:
    assert "mount it" in str(error), error
else:
    raise AssertionError("not mounted")
assert tables.contents() == before

# A session whose columns do not fit is left out, others are added.
lake = Lake()
tables = Tables(lake)
shipped = [lake.ship(number, 1) for number in range(2)]
tables.unfit = {("block", lake.there[shipped[0]][0].path.rpartition("/")[0])}
done = commit_round(lake, tables)
assert (done.sessions, done.skipped) == ([shipped[1]], {shipped[0]: "columns"}), done

# Files that an engine has rewritten are kept while their session is in the lake.
lake = Lake()
tables = Tables(lake)
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
lake = Lake()
tables = Tables(lake)
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
                   ("__HIVE_DEFAULT_PARTITION__", None), ("a%7Eb", "a~b")]:
    assert Partition.of(f"date=2026-01-31/host={text}/session=01ab") == Partition(day, host, "01ab")
for wrong in ["date=2026-02-31/host=a/session=b", "date=x/host=a/session=b", "host=a/session=b",
              "date=2026-01-31/host=a/b/session=c", "x/date=2026-01-31/host=a/session=b",
              # They would be the session of another directory.
              "date=2026-01-31/host=%61/session=b", "date=2026-01-31/host=a/session=%62",
              "date=2026-01-31/host=%FE/session=b", "date=2026-01-31/host=a~b/session=b",
              "date=2026-01-31/host=%c3%bc/session=b"]:
    assert Partition.of(wrong) is None, wrong

# Markers: only objects of their own session.
place = "date=2026-01-31/host=a/session=b"


def marker(*paths, version=1, rows=2, size=1):
    objects = [{"table": path.split("/")[0], "path": path, "bytes": size, "rows": rows} for path in paths]
    return json.dumps({"layout_version": version, "objects": objects}).encode()


row = f"sessions/{place}/part-00000000.0f.parquet"
list_ = f"objects/{place}/part-00000000.0e.parquet"
assert objects_of(marker(list_, row), place) == [Object("objects", list_, 1, 2), Object("sessions", row, 1, 2)]
for contents, reason in [
    (b"{", "damaged"), (b"[" * 100_000, "damaged"), (b"[]", "damaged"), (b"{}", "damaged"),
    (marker(list_, row, size=float("inf")), "damaged"), (marker(list_, row, version=2), "version 2"),
    (marker(), "of table sessions"), (marker(list_, row, row), "of table sessions"),
    (marker(row), "of table objects"), (marker(list_, list_, row), "of table objects"),
    (marker(list_, row, rows=0), "of table sessions"), (marker(list_, row, rows=-1), "of table sessions"),
    (marker(list_, row, f"sessions/{place}/../part-0.0.parquet"), "another place"),
    (marker(list_, row, f"files/{place}x/part-0.0.parquet"), "another place"),
    (marker(list_, row, f"files/{place}/x.parquet"), "another place"),
    (marker(list_, row, f"../{place}/part-0.0.parquet"), "another place"),
    (marker(list_, row, *[f"files/{place}/part-0.0.parquet"] * 2), "twice"),
]:
    try:
        objects_of(contents, place)
    except UnfitError as error:
        assert reason in str(error), error
    else:
        raise AssertionError(contents)
try:
    objects_of(marker(list_, row, version="9" * 1000), place)
except UnfitError as error:
    assert len(str(error)) < 200, error


# A marker that is removed after it was listed.
class Gone:
    def open_input_file(self, path):
        raise FileNotFoundError(path)


real = RealLake.__new__(RealLake)
real._root, real._fs = "lake", Gone()
try:
    real.objects(Listed(place, True))
except UnfitError as error:
    assert "removed" in str(error), error
else:
    raise AssertionError("no marker")

# Lakes.
assert location_of("s3://bucket/lake/") == "s3://bucket/lake"
with tempfile.TemporaryDirectory() as directory:
    assert location_of(directory) == location_of(f"file://{directory}/") == f"file://{directory}"
    for wrong in [f"{directory}/none", f"file://{directory}/none", "file://", "file://."]:
        try:
            location_of(wrong)
        except UsageError as error:
            assert "is no directory" in str(error), error
        else:
            raise AssertionError(wrong)

# What a round says.
said = io.StringIO()
with contextlib.redirect_stderr(said):
    nameless = Partition(day, None, "01ab")
    _report(Round(removed=[nameless], skipped={nameless: "x"}), 0.1)
assert said.getvalue().splitlines() == [
    "fathom: skipped session 01ab of a host without a name: x",
    "fathom: removed session 01ab of a host without a name: it has left the lake"], said.getvalue()

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
