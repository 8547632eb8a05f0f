"""Sessions in a lake, as `fathom ship` lays them out."""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from .._program import FathomError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
    from pyarrow.parquet import FileMetaData

LAYOUT_VERSION = 1
"""The version of the layout that this package reads."""
SESSIONS = "sessions"
OBJECTS = "objects"
_MARKERS = "_sessions"
_MARKER = "session.json"
# crates/ship reads no larger ones either.
_MAX_MARKER = 64 << 20
# As Hive writes null.
_NULL = "__HIVE_DEFAULT_PARTITION__"
_DIRECTORY = re.compile(r"date=(\d{4}-\d\d-\d\d)/host=([^/]+)/session=([^/]+)")
_PART = re.compile(r"part-[0-9a-f.-]+\.parquet")
# While the marker is there, `fathom ship` uploads nothing.
_AGAIN = "remove its marker (session.json), and ship it again"
_TABLE = re.compile(r"[a-z][a-z0-9_]{0,63}")


class UsageError(FathomError):
    """Input that cannot be used, such as a lake that is not there."""


class UnfitError(Exception):
    """A session of the lake that cannot be added. Its message is the reason."""


class Partition(NamedTuple):
    """The values of the columns that are in the paths of objects, not in their files."""

    date: datetime.date
    host: str | None
    session: str

    @classmethod
    def of(cls, directory: str) -> Partition | None:
        """The values in `date=.../host=.../session=...`; None for other paths."""
        match = _DIRECTORY.fullmatch(directory)
        if match is None:
            return None
        try:
            date = datetime.date.fromisoformat(match[1])
        except ValueError:
            return None
        host, session = unquote(match[2]), unquote(match[3])
        # Else several directories would be one session.
        if (_encoded(host), _encoded(session)) != (match[2], match[3]):
            return None
        return cls(date, None if host == _NULL else host, session)


def _encoded(value: str) -> str:
    """As crates/ship encodes a value of a partition."""
    return quote(value, safe="").replace("~", "%7E")


@dataclass
class Listed:
    """The objects of a session that were found by listing."""

    directory: str
    """`date=.../host=.../session=...`"""
    has_marker: bool = False
    objects: set[str] = field(default_factory=set)
    """Paths of its objects of tables `sessions` and `objects`. Their names are hashes of contents
    that describe all other objects, so another version of the session has other names."""


class Object(NamedTuple):
    """An object, as the marker of its session describes it."""

    table: str
    path: str
    """Below the lake."""
    bytes: int
    rows: int


def objects_of(marker: bytes, directory: str) -> list[Object]:
    """The objects that a marker names.

    Raises UnfitError if it is no marker of the session in `directory`.
    """
    try:
        contents = json.loads(marker)
        version = contents["layout_version"]
        objects = [
            Object(str(one["table"]), str(one["path"]), int(one["bytes"]), int(one["rows"]))
            for one in contents["objects"]
        ]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise UnfitError("its marker is damaged; ship it again with --force") from error
    if version != LAYOUT_VERSION:
        raise UnfitError(
            f"its layout has version {str(version)[:20]}, this package reads version {LAYOUT_VERSION}; "
            "use the package of the fathom that shipped it"
        )
    for one in objects:
        folder, _, name = one.path.rpartition("/")
        # A marker names objects of its own session only.
        if (
            not _TABLE.fullmatch(one.table)
            or folder != f"{one.table}/{directory}"
            or not _PART.fullmatch(name)
        ):
            raise UnfitError("its marker names an object of another place; ship it again")
    for table in (SESSIONS, OBJECTS):
        if [one.rows > 0 for one in objects if one.table == table] != [True]:
            raise UnfitError(
                f"its marker does not name one object with rows of table {table}; ship it again "
                "with --force"
            )
    if len({one.path for one in objects}) != len(objects):
        raise UnfitError("its marker names an object twice; ship it again with --force")
    return objects


def location_of(given: str) -> str:
    """The lake as Iceberg writes it: a URL without a slash at its end.

    Raises UsageError if it is neither a URL nor a directory.
    """
    directory = given.removeprefix("file://")
    if "://" not in directory:
        if not os.path.isdir(directory) or (directory != given and not os.path.isabs(directory)):
            raise UsageError(
                f"{given} is no directory; pass the directory or URL that `fathom ship --to` has"
            )
        given = f"file://{os.path.realpath(directory)}"
    # Iceberg reads locations as URLs.
    if any(one in given for one in "?#"):
        raise UsageError(f"cannot use {given}: Iceberg allows no ? and # in paths; rename it")
    return given.rstrip("/")


class Lake:
    """A destination of `fathom ship`."""

    def __init__(self, given: str, properties: dict[str, str]) -> None:
        """Opens the lake. `properties` are those of PyIceberg's file systems, such as
        `s3.endpoint`.

        Raises UsageError if it cannot be used.
        """
        from pyiceberg.io.pyarrow import PyArrowFileIO

        self.location = location_of(given)
        scheme, netloc, path = PyArrowFileIO.parse_location(self.location)
        self._root = path.rstrip("/")
        try:
            self._fs: FileSystem = PyArrowFileIO(properties).fs_by_scheme(scheme, netloc)
        except ValueError as error:
            raise UsageError(
                f"cannot use {given}: {error}; pass s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, "
                "or a directory"
            ) from error

    def relative(self, location: str) -> str | None:
        """The path of a file below the lake; None if it is elsewhere."""
        path = location.removeprefix(self.location + "/")
        return path if path != location else None

    def is_there(self) -> bool:
        """Whether sessions have been shipped to it. If not, it may be a place at which nothing is
        mounted."""
        from pyarrow.fs import FileType

        kind = self._fs.get_file_info(f"{self._root}/{_MARKERS}").type
        return bool(kind != FileType.NotFound)

    def sessions(self, since: datetime.date | None) -> dict[Partition, Listed]:
        """The sessions that began on `since` or later.

        Raises OSError if the lake cannot be listed.
        """
        found: dict[Partition, Listed] = {}
        for table in (_MARKERS, SESSIONS, OBJECTS):
            for path in self._files(table, since):
                folder, _, name = path.rpartition("/")
                directory = folder.removeprefix(f"{table}/")
                partition = Partition.of(directory)
                if partition is None:
                    continue
                session = found.setdefault(partition, Listed(directory))
                if table == _MARKERS:
                    session.has_marker |= name == _MARKER
                elif _PART.fullmatch(name):
                    session.objects.add(path)
        return found

    def objects(self, session: Listed) -> list[Object]:
        """The objects of a session.

        Raises UnfitError if its marker is not usable, OSError if it cannot be read.
        """
        path = f"{self._root}/{_MARKERS}/{session.directory}/{_MARKER}"
        try:
            with self._fs.open_input_file(path) as file:
                if file.size() > _MAX_MARKER:
                    raise UnfitError("its marker is too large; ship it again with --force")
                return objects_of(file.read(), session.directory)
        except FileNotFoundError as error:
            raise UnfitError(
                "its marker has just been removed; run it again when `fathom ship` has ended"
            ) from error

    def footer(self, one: Object) -> FileMetaData:
        """The metadata of a Parquet file.

        Raises UnfitError if it is not as the marker says, OSError if it cannot be read.
        """
        from pyarrow import parquet

        try:
            with self._fs.open_input_file(f"{self._root}/{one.path}") as file:
                if file.size() != one.bytes:
                    raise UnfitError(f"{one.path} has another size than its marker says; {_AGAIN}")
                try:
                    footer = parquet.read_metadata(file)
                except (OSError, ValueError) as error:
                    # PyArrow raises either for a damaged footer.
                    reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
                    raise UnfitError(f"{one.path} is damaged ({reason}); {_AGAIN}") from error
        except FileNotFoundError as error:
            raise UnfitError(
                f"{one.path} is not there; if an engine has expired it, pass --days; otherwise "
                f"{_AGAIN}"
            ) from error
        if footer.num_rows != one.rows:
            raise UnfitError(f"{one.path} has other rows than its marker says; {_AGAIN}")
        return footer

    def _files(self, table: str, since: datetime.date | None) -> Iterator[str]:
        for directory in self._days(table, since):
            for info in self._infos(directory, recursive=True):
                if info.is_file:
                    yield info.path.removeprefix(f"{self._root}/")

    def _days(self, table: str, since: datetime.date | None) -> Iterator[str]:
        top = f"{self._root}/{table}"
        if since is None:
            yield top
            return
        for info in self._infos(top, recursive=False):
            # Days as ISO 8601 writes them are ordered like texts.
            if info.base_name >= f"date={since.isoformat()}":
                yield info.path

    def _infos(self, directory: str, *, recursive: bool) -> Any:
        from pyarrow.fs import FileSelector

        return self._fs.get_file_info(
            FileSelector(directory, allow_not_found=True, recursive=recursive)
        )
