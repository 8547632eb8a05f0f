"""Rows of a session to events: regions that nest, and operations on handles of files."""

from __future__ import annotations

import heapq
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from .._program import FathomError
from .._session import Session
from ._archive import UNDEFINED, Archive, ArchiveError, Definitions, Events, lib

_ROWS = 8192
_MEMORY = "1GB"
# Ways of I/O: identification and name, as Score-P has them, and whether several processes do it together.
_PARADIGMS = {
    "POSIX": ("POSIX I/O", False),
    "ISOC": ("ISO C I/O", False),
    "MPI-IO": ("MPI-IO", True),
    "HDF5": ("HDF5", True),
    "NETCDF": ("netCDF", True),
    "io_uring": ("io_uring", False),
    "AIO": ("Linux AIO", False),
}
# The ways of classes of library functions.
_OF_CLASS = {"stdio": "ISOC", "mpi-io": "MPI-IO", "hdf5": "HDF5", "netcdf": "NETCDF"}
_OF_API = {"io_uring": "io_uring", "aio": "AIO"}
_SYNCS = ("fsync", "fdatasync", "sync_file_range", "IORING_OP_FSYNC", "IORING_OP_SYNC_FILE_RANGE",
          "IOCB_CMD_FSYNC", "IOCB_CMD_FDSYNC")
_OPENS = ("open", "openat", "openat2", "creat", "fopen", "fopen64", "freopen", "fdopen", "tmpfile",
          "tmpfile64")
_CLOSES = ("close", "fclose")
_DUPS = ("dup", "dup2", "dup3")
_LIBRARY_READS = ("read", "gets", "getdelim", "getline")
_LIBRARY_WRITES = ("write", "puts", "printf")

# Rows of a thread in order of time, outer ones before those that they contain.
_STREAM = """
SELECT pid, tid, ts_ns, end_ns, rank, id, name, about, failed, pending, fd, ret, file_id, file_offset, size,
    bytes, flags
FROM (
    SELECT pid, tid, ts_ns, ts_ns + dur_ns AS end_ns, 0 AS rank, user_call AS id, function AS name,
        class || chr(10) || library AS about, failed, ret IS NULL AND dur_ns IS NOT NULL AS pending, fd, ret,
        file_id, file_offset, size, bytes, NULL AS flags, depth
    FROM user_calls WHERE dur_ns IS NOT NULL
    UNION ALL
    SELECT pid, tid, ts_ns, ts_ns + dur_ns, 1, rid, syscall, api || chr(10) || class, ret < 0, ret IS NULL, fd,
        ret, file_id, file_offset, size, bytes, flags, 0
    FROM syscalls WHERE dur_ns IS NOT NULL AND pid IS NOT NULL
    {layers}
)
ORDER BY pid, tid, ts_ns, end_ns DESC, rank, depth
"""
_LAYERS = """
    UNION ALL
    SELECT pid, tid, s.ts_ns, s.ts_ns + s.dur_ns, 2, s.rid, s.name, s.layer, false, false, NULL, NULL, NULL,
        NULL, NULL, NULL, NULL, s.depth
    FROM slices AS s JOIN (SELECT rid, pid, tid FROM syscalls WHERE api = 'syscall' AND pid IS NOT NULL)
    USING (rid) WHERE s.depth > 0 AND s.dur_ns IS NOT NULL
"""


class _Row(NamedTuple):
    pid: int
    tid: int
    ts_ns: int
    end_ns: int
    rank: int
    id: int
    name: str
    about: str
    failed: bool
    pending: bool
    fd: int | None
    ret: int | None
    file_id: int | None
    file_offset: int | None
    size: int | None
    bytes: int | None
    flags: str | None


@dataclass
class Written:
    """What a trace contains, and what of the session it does not."""

    threads: int = 0
    events: int = 0
    library_calls: int = 0
    system_calls: int = 0
    operations: int = 0
    layer_visits: int = 0
    overlapping: int = 0
    """Calls and visits of layers without a region, as they overlap another one of their thread."""
    endless: int = 0
    """Rows without a duration."""
    without_row: dict[str, int] = field(default_factory=dict)
    """Calls that were lost or counted, by reason."""


@dataclass
class _Handle:
    number: int
    file: int
    fd: int
    paradigm: int
    parent: int | None
    made_ns: int | None = None
    used_ns: int | None = None
    reads: bool = False
    writes: bool = False

    def used(self, at: int) -> None:
        self.used_ns = at if self.used_ns is None else min(self.used_ns, at)

    def made(self, at: int) -> None:
        self.made_ns = at if self.made_ns is None else min(self.made_ns, at)

    def access_before(self) -> Any:
        """How the program used it, if it was there before; None if the trace has its beginning."""
        if self.used_ns is None or (self.made_ns is not None and self.made_ns <= self.used_ns):
            return None
        if self.reads and self.writes:
            return lib.IO_ACCESS_MODE_READ_WRITE
        return lib.IO_ACCESS_MODE_WRITE_ONLY if self.writes else lib.IO_ACCESS_MODE_READ_ONLY


def write(session: Session, output: str | os.PathLike[str], *, layers: bool = True) -> Written:
    """Writes `session` as an archive of OTF2 into the new directory `output`, which appears once it is whole.

    `layers`: the parts of system calls (table slices) are regions, too.

    Raises FathomError if `output` exists or cannot be written.
    """
    target = Path(output).absolute()
    if os.path.lexists(target):
        raise FathomError(f"{target} exists already; remove it or choose another directory with -o")
    try:
        # For its owner only.
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise FathomError(f"cannot make {target}: {error.strerror}") from error
    mask = os.umask(0o077)
    try:
        trace, spill = partial / "trace", partial / "sorted"
        trace.mkdir()
        written = _Trace(session, trace, spill, layers=layers).write()
        trace.rename(target)
    except (OSError, ArchiveError, duckdb.Error) as error:
        raise FathomError(f"cannot write {target}: {error}") from error
    finally:
        # The session is the caller's.
        for setting in ("memory_limit", "temp_directory"):
            session._database.execute(f"RESET {setting}")
        os.umask(mask)
        shutil.rmtree(partial, ignore_errors=True)
    return written


class _Trace:
    def __init__(self, session: Session, directory: Path, spill: Path, *, layers: bool) -> None:
        self.session = session
        self.archive = Archive(directory)
        self.layers = layers
        self.spill = spill
        self.done = Written()
        self.files: dict[int, int] = {}
        self.handles: dict[tuple[int, int, int, str], _Handle] = {}
        self.paradigms: dict[str, int] = {}
        self.regions: dict[tuple[int, str, str], int] = {}
        self.processes: dict[int, int] = {}
        self.threads: list[tuple[int, int, int]] = []
        self.first_ns: int | None = None
        self.last_ns = 0
        self.reads, self.writes = self._purposes()

    def write(self) -> Written:
        for pid, tid, rows in self._threads():
            number = len(self.threads)
            with self.archive.location(number) as events:
                _Thread(self, pid, events).write(rows)
            self.threads.append((pid, tid, events.written))
            self.processes.setdefault(pid, len(self.processes))
            self.done.events += events.written
        self.done.threads = len(self.threads)
        self._describe()
        self.archive.close(self._define)
        return self.done

    def _purposes(self) -> tuple[frozenset[str], frozenset[str]]:
        """Calls of the session that move bytes out of files, and into files."""
        rows = self.session.query(
            "SELECT DISTINCT syscall, call_reads(syscall), call_writes(syscall) FROM syscalls"
        ).fetchall()
        return (
            frozenset(name for name, reads, _ in rows if reads),
            frozenset(name for name, reads, writes in rows if writes and not reads),
        )

    def _threads(self) -> Iterator[tuple[int, int, Iterator[_Row]]]:
        rows = self._rows()
        row = next(rows, None)
        while row is not None:
            pid, tid = row.pid, row.tid
            behind: list[_Row] = []

            def own(first: _Row = row, behind: list[_Row] = behind) -> Iterator[_Row]:
                yield first
                for row in rows:
                    if (row.pid, row.tid) != (first.pid, first.tid):
                        behind.append(row)
                        return
                    yield row

            yield pid, tid, own()
            row = behind[0] if behind else None

    def _rows(self) -> Iterator[_Row]:
        database = self.session._database
        with_layers = self.layers and database.execute("FROM slices LIMIT 1").fetchone()
        # What does not fit into memory is sorted on the disk that takes the trace.
        database.execute(f"SET memory_limit = '{_MEMORY}'")
        database.execute("SET enable_progress_bar = false")
        database.execute("SET temp_directory = " + _quoted(self.spill))
        result = database.execute(_STREAM.format(layers=_LAYERS if with_layers else ""))
        while rows := result.fetchmany(_ROWS):
            yield from map(_Row._make, rows)

    def region(self, row: _Row) -> int:
        key = (row.rank, row.name, row.about)
        number = self.regions.get(key)
        if number is None:
            number = self.regions[key] = len(self.regions)
        return number

    def handle(self, pid: int, file: int, fd: int, way: str) -> _Handle:
        key = (pid, file, fd, way)
        handle = self.handles.get(key)
        if handle is None:
            number = self.files.setdefault(file, len(self.files))
            paradigm = self.paradigms.setdefault(way, len(self.paradigms))
            below = None if way == "POSIX" else self.handles.get((pid, file, fd, "POSIX"))
            parent = below.number if below else None
            handle = _Handle(len(self.handles), number, fd, paradigm, parent)
            self.handles[key] = handle
        return handle

    def at(self, ns: int) -> int:
        """A time of an event."""
        if self.first_ns is None or ns < self.first_ns:
            self.first_ns = ns
        self.last_ns = max(self.last_ns, ns)
        return ns

    def _describe(self) -> None:
        meta = self.session.meta
        host = meta["host"]["name"] or "unknown"
        command = " ".join(meta.get("command") or []) or meta.get("target", "")
        self.archive.describe(f"fathom {meta['fathom_version']}", command, host)
        done, totals = self.done, meta["totals"]
        layers = totals.get("layers", {})
        done.endless = self._number(
            "SELECT (SELECT count(*) FROM user_calls WHERE dur_ns IS NULL) + "
            "(SELECT count(*) FROM syscalls WHERE dur_ns IS NULL OR pid IS NULL)"
        )
        counts = {
            "lost": totals.get("lost", 0),
            "counted": totals.get("counted", 0),
            "expired": totals.get("expired", 0),
            "missing": totals.get("missing", 0),
            "library calls lost": self._number(
                "SELECT coalesce(sum(count), 0) FROM losses WHERE syscall = 'user_call'"
            ),
            "library calls counted": layers.get("user_calls_counted", 0),
            "library calls nested too deep": layers.get("user_calls_unseen", 0),
        }
        done.without_row = {reason: int(count) for reason, count in counts.items() if count}
        for reason, count in counts.items():
            name = reason if reason.startswith("library") else f"calls {reason}"
            self.archive.set_property(name.upper().replace(" ", "_"), int(count))
        self.archive.set_property("CALLS_SEEN", totals.get("seen", 0))
        self.archive.set_property("SESSION", meta["id"])
        self.archive.set_property("REGIONS_OVERLAPPING", done.overlapping)
        self.archive.set_property("CALLS_WITHOUT_DURATION", done.endless)

    def _number(self, query: str) -> int:
        row = self.session._database.execute(query).fetchone()
        return int(row[0]) if row else 0

    def _define(self, to: Definitions) -> None:
        clock = self.session.meta["clock"]
        started = int(clock["start_monotonic_ns"])
        ended = int(clock.get("end_monotonic_ns") or self.last_ns)
        # A call may have begun before the recording.
        first = min(started, started if self.first_ns is None else self.first_ns)
        last = max(ended, self.last_ns, first)
        to.clock(first, last - first, int(clock["start_realtime_ns"]) - (started - first))
        to.machine(self.session.meta["host"]["name"] or "unknown")
        self._define_threads(to)
        for (rank, name, about), number in self.regions.items():
            role, paradigm, shown, description = _region(rank, name, about)
            to.region(number, shown, description, role, paradigm)
        to.attribute(0, "file_offset", "position in the file where the operation begins, bytes")
        for way, number in self.paradigms.items():
            name, parallel = _PARADIGMS[way]
            to.paradigm(number, way, name, parallel=parallel)
        self._define_files(to)
        for handle in self.handles.values():
            to.handle(
                handle.number,
                f"fd {handle.fd}" if handle.fd >= 0 else "",
                handle.file,
                handle.paradigm,
                handle.parent,
                handle.access_before(),
            )

    def _define_threads(self, to: Definitions) -> None:
        names: dict[tuple[int, int], str] = {}
        query = "SELECT pid, tid, comm FROM processes WHERE comm IS NOT NULL"
        for pid, tid, comm in _all(self.session, query):
            names[pid, tid] = comm
        for pid, number in self.processes.items():
            to.process(number, f"{names.get((pid, pid), 'process')} ({pid})")
        for number, (pid, tid, events) in enumerate(self.threads):
            name = f"{names.get((pid, tid), 'thread')} ({tid})"
            to.thread(number, name, events, self.processes[pid])

    def _define_files(self, to: Definitions) -> None:
        known = {}
        for file, *facts in _all(self.session, "SELECT file_id, path, file_type, dev, ino FROM files"):
            if file in self.files:
                known[file] = facts
        # In the order of their numbers, as everything.
        for file, number in self.files.items():
            path, kind, device, inode = known.get(file, (None, None, None, None))
            name = path if path is not None else f"(device {device}, inode {inode})"
            to.file(number, name, directory=kind == "directory")
            for about, value in (("device", device), ("inode", inode), ("file_id", file)):
                if value is not None:
                    to.file_property(number, about, str(value))


class _Thread:
    """Events of a thread. Those at the ends of rows wait until their time comes."""

    def __init__(self, trace: _Trace, pid: int, events: Events) -> None:
        self.trace = trace
        self.pid = pid
        self.events = events
        self.stack: list[tuple[int, int, Callable[[], None] | None]] = []
        # Ends of operations, which do not nest.
        self.later: list[tuple[int, int, Callable[[], None]]] = []
        self.number = 0

    def write(self, rows: Iterator[_Row]) -> None:
        for row in rows:
            self.until(row.ts_ns)
            if row.rank == 1 and not row.about.startswith("syscall\n"):
                self.operation(row)
            else:
                self.region(row)
        self.until(None)

    def until(self, at: int | None) -> None:
        """Writes what ends up to `at`."""
        while self.stack or self.later:
            later = bool(self.later) and (not self.stack or self.later[0][0] <= self.stack[-1][0])
            end = self.later[0][0] if later else self.stack[-1][0]
            if at is not None and end > at:
                return
            if later:
                heapq.heappop(self.later)[2]()
                continue
            end, region, last = self.stack.pop()
            if last:
                last()
            self.events.leave(end, region)

    def region(self, row: _Row) -> None:
        done, at = self.trace.done, self.trace.at
        end = row.end_ns
        if self.stack and end > self.stack[-1][0]:
            if not row.pending:
                done.overlapping += 1
                if row.rank < 2:
                    self.operation(row)
                return
            # Its end is the time at which it was seen last.
            end = self.stack[-1][0]
        region = self.trace.region(row)
        self.events.enter(at(row.ts_ns), region)
        last = None
        if row.rank == 2:
            done.layer_visits += 1
        else:
            if row.rank == 0:
                done.library_calls += 1
            else:
                done.system_calls += 1
            last = self.io(row, end, blocking=True)
        self.stack.append((at(end), region, last))

    def operation(self, row: _Row) -> None:
        """A row that overlaps others: of io_uring or AIO, most of all."""
        last = self.io(row, row.end_ns, blocking=False)
        if last:
            self.number += 1
            heapq.heappush(self.later, (self.trace.at(row.end_ns), self.number, last))

    def io(self, row: _Row, end: int, *, blocking: bool) -> Callable[[], None] | None:
        """What a row does with the handle of a file now; what it does at its end."""
        way = _way(row)
        if way is None or row.file_id is None:
            return None
        fd = row.ret if row.name in _OPENS and row.rank == 1 else row.fd
        if row.name in (*_OPENS, *_CLOSES, *_DUPS):
            unknown = row.rank == 1 and row.ret is None
            if row.failed or unknown or row.pending or fd is None or fd < 0:
                return None
            return lambda: self.handle_changes(row, end, fd, way)
        mode = self.mode(row)
        if mode is None:
            return None
        handle = self.trace.handle(self.pid, row.file_id, -1 if fd is None else fd, way)
        handle.used(row.ts_ns)
        handle.reads |= mode == lib.IO_OPERATION_MODE_READ
        handle.writes |= mode == lib.IO_OPERATION_MODE_WRITE
        at, events = self.trace.at, self.events
        flags = lib.IO_OPERATION_FLAG_NONE if blocking else lib.IO_OPERATION_FLAG_NON_BLOCKING
        is_flush = mode == lib.IO_OPERATION_MODE_FLUSH
        size = UNDEFINED if is_flush else _size(row.size)
        events.begin(at(row.ts_ns), handle.number, mode, flags, size, row.id, row.file_offset)
        if not blocking:
            events.issued(row.ts_ns, handle.number, row.id)
        self.trace.done.operations += 1
        if row.pending:
            return None
        moved = UNDEFINED if is_flush else _size(row.bytes)
        return lambda: events.complete(end, handle.number, moved, row.id)

    def handle_changes(self, row: _Row, end: int, fd: int, way: str) -> None:
        trace, events = self.trace, self.events
        assert row.file_id is not None
        if row.name in _DUPS:
            assert row.ret is not None
            new = trace.handle(self.pid, row.file_id, row.ret, way)
            old = trace.handle(self.pid, row.file_id, fd, way)
            old.used(row.ts_ns)
            new.made(end)
            events.duplicate(end, old.number, new.number)
            return
        handle = trace.handle(self.pid, row.file_id, fd, way)
        if row.name in _CLOSES:
            handle.used(row.ts_ns)
            events.destroy(end, handle.number)
            return
        handle.made(end)
        events.create(end, handle.number, *_flags(row.flags))

    def mode(self, row: _Row) -> Any:
        """Whether a row reads or writes a file, or makes it durable."""
        trace = self.trace
        if row.rank == 0:
            name = row.name.lower()
            if row.bytes is None and row.size is None:
                return None
            if any(word in name for word in _LIBRARY_WRITES):
                return lib.IO_OPERATION_MODE_WRITE
            if any(word in name for word in _LIBRARY_READS):
                return lib.IO_OPERATION_MODE_READ
            return None
        if row.name in _SYNCS:
            return lib.IO_OPERATION_MODE_FLUSH
        if row.name in trace.reads:
            return lib.IO_OPERATION_MODE_READ
        return lib.IO_OPERATION_MODE_WRITE if row.name in trace.writes else None


def _way(row: _Row) -> str | None:
    about = row.about.partition("\n")[0]
    if row.rank == 0:
        return _OF_CLASS.get(about)
    return _OF_API.get(about, "POSIX")


def _size(size: int | None) -> int:
    return UNDEFINED if size is None or size < 0 else size


def _region(rank: int, name: str, about: str) -> tuple[Any, Any, str, str]:
    """Role, paradigm, name and description of a region."""
    first, _, rest = about.partition("\n")
    if rank == 2:
        return lib.REGION_ROLE_FUNCTION, lib.PARADIGM_UNKNOWN, f"{first}:{name}", f"layer {first}"
    if rank == 1:
        moves = rest == "data"
        role = lib.REGION_ROLE_FILE_IO if moves else lib.REGION_ROLE_FILE_IO_METADATA
        if rest in ("wait", "memory", "socket"):
            role = lib.REGION_ROLE_FUNCTION
        return role, lib.PARADIGM_UNKNOWN, name, f"system call, class {rest}"
    paradigm = {"mpi-io": lib.PARADIGM_MPI, "pthread": lib.PARADIGM_PTHREAD}.get(first, lib.PARADIGM_USER)
    role = lib.REGION_ROLE_FILE_IO if first in _OF_CLASS else lib.REGION_ROLE_FUNCTION
    return role, paradigm, name, rest


def _flags(flags: str | None) -> tuple[Any, Any, Any]:
    """Access, flags of the creation, and of the handle."""
    words = set((flags or "").split("|"))
    access = lib.IO_ACCESS_MODE_READ_ONLY
    if "O_WRONLY" in words:
        access = lib.IO_ACCESS_MODE_WRITE_ONLY
    elif "O_RDWR" in words or not flags:
        # Functions of libraries have no flags in their rows.
        access = lib.IO_ACCESS_MODE_READ_WRITE

    def bits(of: Any, names: dict[str, Any]) -> Any:
        value = 0
        for word, flag in names.items():
            if word in words:
                value |= flag.value
        return of(value)

    creation = {
        "O_CREAT": lib.IO_CREATION_FLAG_CREATE,
        "O_EXCL": lib.IO_CREATION_FLAG_EXCLUSIVE,
        "O_TRUNC": lib.IO_CREATION_FLAG_TRUNCATE,
        "O_DIRECTORY": lib.IO_CREATION_FLAG_DIRECTORY,
        "O_NOFOLLOW": lib.IO_CREATION_FLAG_NO_FOLLOW,
        "O_TMPFILE": lib.IO_CREATION_FLAG_TEMPORARY_FILE,
        "O_PATH": lib.IO_CREATION_FLAG_PATH,
        "O_NOCTTY": lib.IO_CREATION_FLAG_NO_CONTROLLING_TERMINAL,
    }
    status = {
        "O_CLOEXEC": lib.IO_STATUS_FLAG_CLOSE_ON_EXEC,
        "O_APPEND": lib.IO_STATUS_FLAG_APPEND,
        "O_NONBLOCK": lib.IO_STATUS_FLAG_NON_BLOCKING,
        "O_SYNC": lib.IO_STATUS_FLAG_SYNC,
        "O_DSYNC": lib.IO_STATUS_FLAG_DATA_SYNC,
        "O_DIRECT": lib.IO_STATUS_FLAG_AVOID_CACHING,
        "O_NOATIME": lib.IO_STATUS_FLAG_NO_ACCESS_TIME,
    }
    return access, bits(lib.IoCreationFlag, creation), bits(lib.IoStatusFlag, status)


def _all(session: Session, query: str) -> Iterator[tuple[Any, ...]]:
    result = session._database.execute(query)
    while rows := result.fetchmany(_ROWS):
        yield from rows


def _quoted(path: Path) -> str:
    return "'" + os.fspath(path).replace("'", "''") + "'"
