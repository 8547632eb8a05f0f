"""A round: sessions that the lake has and the tables do not have are added.

The state is in the lake and in the tables only. A session is in the tables when table `sessions` has
its row, which is added last. Table `objects` has its rows first, as an intent: what an attempt that was
killed has added is found there, also when its session has left the lake since.

Two committers may see different versions of a session. Each loads its tables before it changes any, and
commits to a table only if no other program has since. An attempt that finds a session begun by another
one changes all tables, also those without files of it: so the other one, if it is still there, can
change none any more.
"""

from __future__ import annotations

import datetime
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .._program import FathomError
from ._lake import OBJECTS, SESSIONS, Listed, Object, Partition, UnfitError

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

SESSIONS_PER_ROUND = 200
"""Sessions that a round adds at most. PyIceberg prunes manifests by lists of so many values."""
_ATTEMPTS = 20
_FOOTERS_AT_ONCE = 8


class ConflictError(Exception):
    """Another program has changed a table in the meantime."""


class Stored(NamedTuple):
    """An object with rows, ready to be added to a table."""

    location: str
    bytes: int
    footer: FileMetaData


class Change(NamedTuple):
    """The files of a table that a commit changes."""

    added: int = 0
    dropped: int = 0
    rows: int = 0
    """In the added files."""


class Lake(Protocol):
    """The part of `fathom.iceberg.Lake` that a round needs."""

    location: str

    def relative(self, location: str) -> str | None: ...
    def is_there(self) -> bool: ...
    def sessions(self, since: datetime.date | None) -> dict[Partition, Listed]: ...
    def objects(self, session: Listed) -> list[Object]: ...
    def footer(self, one: Object) -> Any: ...


class Tables(Protocol):
    """The part of `fathom.iceberg.Tables` that a round needs."""

    def begin(self) -> None:
        """Begins an attempt: tables are loaded again."""

    def names(self) -> set[str]:
        """Tables of fathom that are there."""

    def files(self, table: str, since: datetime.date | None) -> dict[Partition, set[str]]:
        """The locations of a table's files by session; none if the table is not there."""

    def admit(self, footers: Mapping[str, Sequence[Any]]) -> None:
        """Makes the tables of these files of a session that are not there.

        Raises UnfitError if a table cannot have the columns of a file, and makes none.
        """

    def load(self, names: Iterable[str]) -> None:
        """Loads tables that this attempt has not loaded."""

    def equalize(
        self, table: str, wanted: Mapping[Partition, Sequence[Stored]], *, always: bool
    ) -> Change:
        """Makes these files, and no others, the files of these sessions, by one snapshot. Makes an
        empty snapshot if the files are right and `always` is set.

        Raises ConflictError if another program has changed the table since it was loaded.
        """


@dataclass
class Round:
    """The result of a round."""

    sessions: list[Partition] = field(default_factory=list)
    """Added, among them those that were replaced."""
    removed: list[Partition] = field(default_factory=list)
    """Removed from the tables, because their objects are no longer in the lake."""
    skipped: dict[Partition, str] = field(default_factory=dict)
    """Left out, and why."""
    left: int = 0
    """Sessions for the next round."""
    files: int = 0
    rows: int = 0
    tables: int = 0
    """Tables whose files have changed."""


def commit_round(
    lake: Lake,
    tables: Tables,
    *,
    since: datetime.date | None = None,
    at_most: int = SESSIONS_PER_ROUND,
    attempts: int = _ATTEMPTS,
) -> Round:
    """Adds the sessions of the lake that the tables do not have, the oldest first.

    Sessions that began before `since` are left as they are. Repeats with a fresh look if another
    program has changed a table. Raises FathomError if that happens at each attempt.
    """
    for attempt in range(attempts):
        try:
            return _attempt(lake, tables, since, at_most)
        except ConflictError:
            time.sleep(random.uniform(0, min(0.05 * 2**attempt, 5)))
    raise FathomError(
        f"the tables were changed by another program during each of {attempts} attempts; run fewer "
        "committers at a time, then run this one again"
    )


def _attempt(lake: Lake, tables: Tables, since: datetime.date | None, at_most: int) -> Round:
    done = Round()
    tables.begin()
    # The tables first: a session that another committer adds now is in the later list of the lake.
    committed = tables.files(SESSIONS, since)
    intended = tables.files(OBJECTS, since)
    listed = lake.sessions(since)
    stale = {
        partition
        for files in (committed, intended)
        for partition, locations in files.items()
        if _is_stale(lake, locations, listed.get(partition))
    }
    if stale and not lake.is_there():
        raise FathomError(
            f"the tables have sessions of {lake.location}, which has no directory _sessions now; mount "
            "it, or drop the tables if all of its sessions were removed"
        )
    new = [
        partition
        for partition, session in listed.items()
        if session.has_marker and (partition not in committed or partition in stale)
    ]
    new.sort(key=_order)
    done.left = len(new)
    gone = sorted(stale.difference(new), key=_order)
    if not new and not gone:
        return done
    wanted: dict[str, dict[Partition, list[Stored]]] = {}
    there = tables.names()
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        for partition in new:
            if len(done.sessions) == at_most:
                break
            done.left -= 1
            try:
                described = _described(lake, tables, listed[partition], there, pool)
            except UnfitError as error:
                done.skipped[partition] = str(error)
                if partition in stale:
                    gone.append(partition)
                continue
            done.sessions.append(partition)
            for table, objects in described.items():
                wanted.setdefault(table, {})[partition] = objects
    done.removed = gone

    # Other versions of these may have files in any table.
    begun = [
        partition
        for partition in done.sessions
        if partition in committed or partition in intended
    ]
    emptied: dict[Partition, list[Stored]] = {partition: [] for partition in (*gone, *begun)}
    others = {*wanted, *(there if emptied else ())} - {SESSIONS, OBJECTS}
    tables.load([SESSIONS, OBJECTS, *others] if done.sessions or gone else [])
    touched = set()

    def equalize(table: str, files: Mapping[Partition, Sequence[Stored]]) -> None:
        if not files:
            return
        change = tables.equalize(table, files, always=bool(emptied))
        if change.added or change.dropped:
            touched.add(table)
        done.files += change.added
        done.rows += change.rows

    equalize(SESSIONS, emptied)
    equalize(OBJECTS, wanted.get(OBJECTS, {}))
    for table in sorted(others):
        equalize(table, {**emptied, **wanted.get(table, {})})
    equalize(OBJECTS, {partition: [] for partition in gone})
    equalize(SESSIONS, wanted.get(SESSIONS, {}))
    done.tables = len(touched)
    return done


def _order(partition: Partition) -> tuple[datetime.date, str, str]:
    return partition.date, partition.host or "", partition.session


def _is_stale(lake: Lake, locations: Iterable[str], session: Listed | None) -> bool:
    """Whether a file of the session is no longer in the lake. Files elsewhere, which an engine has
    written, stay readable."""
    paths = {path for path in map(lake.relative, locations) if path is not None}
    if not paths:
        return False
    return session is None or not session.has_marker or not paths <= session.objects


def _described(
    lake: Lake, tables: Tables, session: Listed, there: set[str], pool: ThreadPoolExecutor
) -> dict[str, list[Stored]]:
    """The objects of a session with rows, by table. Tables that are not `there` are made, because
    queries name tables without rows, too."""
    objects = lake.objects(session)
    read = [one for one in objects if one.rows or one.table not in there]
    footers: dict[str, list[Any]] = {}
    described: dict[str, list[Stored]] = {}
    for one, footer in zip(read, pool.map(lake.footer, read), strict=True):
        footers.setdefault(one.table, []).append(footer)
        if one.rows:
            stored = Stored(f"{lake.location}/{one.path}", one.bytes, footer)
            described.setdefault(one.table, []).append(stored)
    tables.admit(footers)
    there.update(footers)
    return described
