"""Sessions: their tables from Parquet files, their views from the program."""

from __future__ import annotations

import fcntl
import json
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from . import _program
from ._schema import SCHEMA_VERSION, TABLES, VIEWS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A part, or a part that was merged from the parts FIRST to LAST.
_PART = re.compile(r"part-(\d{8,})(?:-(\d{8,}))?\.parquet")
_WORD = re.compile(r"\w+")

# Bios that are alone in their request are columns of table block.
_BIOS_IN_BLOCK = """
    SELECT block_id, rid,
        CASE WHEN bio_submit_rid IS NULL THEN rid ELSE nullif(bio_submit_rid, 0) END AS submit_rid,
        queued_at_ns AS ts_ns, sector, bytes, bio_origin AS origin, pid, tid, comm,
        CASE WHEN bio_cause_pid IS NULL THEN pid ELSE nullif(bio_cause_pid, 0) END AS cause_pid,
        CASE WHEN bio_cause_tid IS NULL THEN tid ELSE nullif(bio_cause_tid, 0) END AS cause_tid,
        file_id, path, file_offset
    FROM ({block}) WHERE bio_origin IS NOT NULL
"""


def open(path: str | os.PathLike[str]) -> Session:  # noqa: A001, like gzip.open
    """Opens the session in directory `path`.

    Raises FathomError if it is not a session that this package reads.
    """
    return Session(path)


class Session:
    """A recording.

    Each table that docs/schema.md describes is an attribute, `session.syscalls`, and each view a
    method, `session.by_file()`: a view is computed when it is called. Both give a relation of
    DuckDB, which has `.df()` (pandas), `.pl()` (Polars), `.arrow()`, `.filter(...)`, and
    `.fetchall()`.
    """

    path: Path
    """Its directory."""
    meta: dict[str, Any]
    """The contents of session.json."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._views: set[str] = set()
        self._database = duckdb.connect()
        self._database.execute("SET TimeZone = 'UTC'")
        self.refresh()

    def __repr__(self) -> str:
        return f"<fathom.Session {str(self.path)!r}>"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *TABLES, *VIEWS]

    def __getattr__(self, name: str) -> Any:
        if name in TABLES:
            return self.table(name)
        if name in VIEWS:
            return lambda: self.table(name)
        raise AttributeError(f"a session has no table or view {name!r}")

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the database. Relations that are not evaluated become unusable."""
        self._database.close()

    @property
    def started_at_ns(self) -> int:
        """Start of the recording, CLOCK_MONOTONIC nanoseconds, like `ts_ns`."""
        return int(self.meta["clock"]["start_monotonic_ns"])

    @property
    def is_running(self) -> bool:
        """Whether it is being recorded now."""
        try:
            with (self.path / ".lock").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def refresh(self) -> None:
        """Reads the newest state of a session that is being recorded.

        Raises FathomError if it is not a session that this package reads.
        """
        file = self.path / "session.json"
        try:
            self.meta = json.loads(file.read_bytes())
            version = self.meta["schema_version"]
        except OSError as error:
            raise _program.FathomError(
                f"{self.path} is not a session: cannot read session.json ({error.strerror}); "
                "pass a directory written by `fathom record`"
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise _program.FathomError(
                f"{file} is damaged; `fathom repair` repairs as much as possible"
            ) from error
        if version != SCHEMA_VERSION:
            raise _program.FathomError(
                f"{file} has schema version {version}, this package reads version "
                f"{SCHEMA_VERSION}; use the package of the fathom that wrote it"
            )
        for name in TABLES:
            self._database.execute(f'CREATE OR REPLACE TEMP VIEW "{name}" AS {self._select(name)}')
        for name in self._views:
            self._database.execute(f'DROP TABLE IF EXISTS "{name}"')
        self._views.clear()

    def sql(self, query: str, parameters: list[Any] | None = None) -> duckdb.DuckDBPyRelation:
        """The result of a SELECT over the tables and views, in DuckDB's dialect.

        `?` in the query stands for the next one of `parameters`. Functions of `fathom query`, such
        as wall_time, are not available; `fathom.Session.query` runs those.
        """
        for name in set(_WORD.findall(query)) & set(VIEWS) - self._views:
            self._load(name, f'FROM "{name}"')
        if parameters is None:
            return self._database.sql(query)
        return self._database.sql(query, params=parameters)

    def query(self, query: str) -> duckdb.DuckDBPyRelation:
        """The result of `fathom query`, with all its functions and limits.

        Raises FathomError with the message of fathom.
        """
        name = f"query_{len(self._views)}"
        self._load(name, query)
        return self._database.table(name)

    def table(self, name: str) -> duckdb.DuckDBPyRelation:
        """A table or view by its name."""
        if name not in TABLES and name not in VIEWS:
            raise AttributeError(f"a session has no table or view {name!r}")
        return self.sql(f'FROM "{name}"')

    def latency_plot(self, axes: Axes | None = None) -> Axes:
        """A histogram of the latencies of each call, lost calls included. Needs matplotlib."""
        rows = self.latency_histogram().fetchall()
        axes = axes or _axes()
        for call in sorted({row[0] for row in rows}):
            points = [(row[2], row[4]) for row in rows if row[0] == call]
            axes.step(*zip(*sorted(points), strict=True), where="post", label=call)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("latency, ns")
        axes.set_ylabel("calls")
        if rows:
            axes.legend(fontsize="small")
        return axes

    def throughput_plot(self, axes: Axes | None = None) -> Axes:
        """Bytes read and written per second of the recording. Needs matplotlib."""
        rows = self.sql(
            "SELECT second, read_bytes, written_bytes FROM by_second ORDER BY second"
        ).fetchall()
        axes = axes or _axes()
        seconds = [row[0] for row in rows]
        axes.plot(seconds, [(row[1] or 0) / 2**20 for row in rows], ".-", label="read")
        axes.plot(seconds, [(row[2] or 0) / 2**20 for row in rows], ".-", label="written")
        axes.set_xlabel("seconds since the recording began")
        axes.set_ylabel("MiB/s")
        axes.legend()
        return axes

    def _load(self, name: str, query: str) -> None:
        """Makes the result of `fathom query` a table."""
        with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
            file.write(_program.run("query", self.path, query, "--format", "parquet"))
            file.flush()
            # A table, because the file is gone after this.
            self._database.execute(
                f'CREATE OR REPLACE TEMP TABLE "{name}" AS FROM read_parquet({_text(file.name)})'
            )
        self._views.add(name)

    def _parts(self, table: str) -> list[Path]:
        """The parts of a table in the order of writing, without those that a merge replaced."""
        parts = []
        folder = self.path / table
        for file in folder.iterdir() if folder.is_dir() else []:
            if match := _PART.fullmatch(file.name):
                first = int(match[1])
                parts.append((first, int(match[2] or first), file))

        def replaced(part: tuple[int, int, Path]) -> bool:
            return any(
                other[2] != part[2] and other[0] <= part[0] and part[1] <= other[1]
                for other in parts
            )

        return [part[2] for part in sorted(parts) if not replaced(part)]

    def _select(self, table: str) -> str:
        """SQL for the rows of a table as docs/schema.md describes them."""
        columns, key = TABLES[table]
        parts = self._parts(table)
        selects = []
        if parts:
            rows = _rows(columns, parts, hidden=False)
            if key:
                # Of several versions of a row the last one counts.
                rows += (
                    f" QUALIFY row_number() OVER (PARTITION BY {', '.join(key)} "
                    "ORDER BY file_index DESC, file_row_number DESC) = 1"
                )
            selects.append(rows)
        if table == "bios" and (blocks := self._parts("block")):
            selects.append(
                _BIOS_IN_BLOCK.format(block=_rows(TABLES["block"][0], blocks, hidden=True))
            )
        if not selects:
            nulls = ", ".join(
                f'NULL::{kind} AS "{name}"' for name, kind, _, hidden in columns if not hidden
            )
            selects.append(f"SELECT {nulls} WHERE false")
        return " UNION ALL ".join(selects)


def _rows(columns: list[tuple[str, str, str, bool]], parts: list[Path], *, hidden: bool) -> str:
    chosen = ", ".join(
        f'({value})::{kind} AS "{name}"' for name, kind, value, is_hidden in columns
        if hidden or not is_hidden
    )
    files = ", ".join(_text(_escaped(str(part.absolute()))) for part in parts)
    return f"SELECT {chosen} FROM read_parquet([{files}])"


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _escaped(path: str) -> str:
    """A path for DuckDB, which takes it for a pattern."""
    return re.sub(r"[*?\[]", r"[\g<0>]", path)


def _axes() -> Axes:
    from matplotlib import pyplot

    return pyplot.subplots()[1]
