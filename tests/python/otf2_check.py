"""Traces of `python -m fathom.otf2`, read by OTF2's own reader, against the rows of their sessions.

    otf2_check.py DIRECTORY SESSION...
"""

import subprocess
import sys
from collections import Counter
from pathlib import Path

# Debian's package of the bindings; behind the packages of this environment.
sys.path.append("/usr/lib/python3/dist-packages")

import fathom  # noqa: E402
import otf2  # noqa: E402
from fathom.otf2.__main__ import main  # noqa: E402
from otf2.events import (  # noqa: E402
    Enter,
    IoCreateHandle,
    IoDestroyHandle,
    IoDuplicateHandle,
    IoOperationBegin,
    IoOperationComplete,
    Leave,
)

UNDEFINED = 2**64 - 1


def number_of(location):
    return int(location.name.rsplit("(", 1)[1].rstrip(")"))


def expected(session):
    """Regions, and operations on files, that the rows say."""
    rows = session.query(
        """
        SELECT pid, tid, name, ts_ns, end_ns FROM (
            SELECT pid, tid, function AS name, ts_ns, ts_ns + dur_ns AS end_ns FROM user_calls
            UNION ALL
            SELECT pid, tid, syscall, ts_ns, ts_ns + dur_ns FROM syscalls WHERE api = 'syscall'
            UNION ALL
            SELECT pid, tid, s.layer || ':' || s.name, s.ts_ns, s.ts_ns + s.dur_ns
            FROM slices s JOIN syscalls c USING (rid) WHERE s.depth > 0 AND c.api = 'syscall'
        ) WHERE end_ns IS NOT NULL
        """
    ).fetchall()
    operations = session.query(
        """
        SELECT f.path, way, mode, count(*) AS operations, sum(bytes)::BIGINT AS bytes,
            sum(file_offset)::BIGINT AS offsets
        FROM (
            SELECT file_id, CASE api WHEN 'syscall' THEN 'POSIX' WHEN 'aio' THEN 'AIO' ELSE api END AS way,
                CASE WHEN call_reads(syscall) THEN 'READ' WHEN call_writes(syscall) THEN 'WRITE' ELSE 'FLUSH' END
                AS mode, bytes, file_offset
            FROM syscalls WHERE call_reads(syscall) OR call_writes(syscall)
            OR syscall SIMILAR TO '(IORING_OP_|IOCB_CMD_)?F?D?(fsync|FSYNC)|fdatasync|IOCB_CMD_FDSYNC'
            UNION ALL
            SELECT file_id, 'ISOC', CASE WHEN function LIKE 'fread%' THEN 'READ' ELSE 'WRITE' END, bytes, NULL
            FROM user_calls WHERE class = 'stdio' AND function SIMILAR TO 'f(read|write)(_unlocked)?'
        ) JOIN files f USING (file_id) GROUP BY ALL
        """
    ).fetchall()
    return Counter(rows), {tuple(row[:3]): tuple(n or 0 for n in row[3:]) for row in operations}


def found(path):
    regions, operations, open_operations = Counter(), {}, {}
    handles, kinds = Counter(), Counter()
    with otf2.reader.open(str(path)) as reader:
        offset = next(a for a in reader.definitions.attributes if a.name == "file_offset")
        clock = reader.definitions.clock_properties
        files = {file.name for file in reader.definitions.io_files}
        properties = {
            name: otf2_property(reader, name)
            for name in ("CALLS_SEEN", "CALLS_LOST", "LIBRARY_CALLS_COUNTED", "REGIONS_OVERLAPPING")
        }
        stacks, last = {}, {}
        for location, event in reader.events:
            kinds[type(event).__name__] += 1
            assert event.time >= last.get(location, 0), "out of order"
            assert clock.global_offset <= event.time <= clock.global_offset + clock.trace_length
            last[location] = event.time
            stack = stacks.setdefault(location, [])
            pid, tid = number_of(location.group), number_of(location)
            if isinstance(event, Enter):
                stack.append((event.region, event.time))
            elif isinstance(event, Leave):
                region, began = stack.pop()
                assert region == event.region, "not nested"
                name = region.name
                regions[pid, tid, name, began, event.time] += 1
            elif isinstance(event, IoOperationBegin):
                key = (location, event.handle, event.matching_id)
                assert key not in open_operations
                at = (event.attributes or {}).get(offset, 0)
                open_operations[key] = (str(event.mode).rsplit(".", 1)[-1], at)
            elif isinstance(event, IoOperationComplete):
                mode, at = open_operations.pop((location, event.handle, event.matching_id))
                key = (event.handle.file.name, event.handle.io_paradigm.identification, mode)
                count, moved, offsets = operations.get(key, (0, 0, 0))
                more = 0 if event.bytes_result == UNDEFINED else event.bytes_result
                operations[key] = (count + 1, moved + more, offsets + at)
            elif isinstance(event, IoCreateHandle | IoDestroyHandle | IoDuplicateHandle):
                handles[type(event).__name__] += 1
        assert not any(stacks.values()), "a region without an end"
        return regions, operations, handles, kinds, clock, files, properties


def otf2_property(reader, name):
    import _otf2

    return int(_otf2.Reader_GetProperty(reader._handle, f"FATHOM::{name}"))


def check(path, directory):
    session = fathom.open(path)
    trace = directory / (Path(path).name + ".otf2")
    assert main([str(path), "-o", str(trace)]) == 0
    assert trace.stat().st_mode & 0o077 == 0
    # It is never replaced.
    assert main([str(path), "-o", str(trace)]) == 1
    regions, operations, handles, kinds, clock, files, properties = found(trace / "traces.otf2")
    rows, moved = expected(session)
    # Of requests that are in the device together, some visits do not nest. All calls do.
    missing = rows - regions
    assert not regions - rows, list((regions - rows).items())[:5]
    assert all(":" in region[2] for region in missing), list(missing.items())[:5]
    assert properties["REGIONS_OVERLAPPING"] == missing.total()
    for key, sums in moved.items():
        assert operations.get(key) == sums, (key, operations.get(key), sums)
    assert set(operations) == set(moved), set(operations) ^ set(moved)
    assert {key[0] for key in moved} <= files
    made = session.query(
        "SELECT count(*) FILTER (syscall IN ('open', 'openat', 'openat2', 'creat')),"
        " count(*) FILTER (syscall = 'close') FROM syscalls WHERE ret >= 0 AND file_id IS NOT NULL"
    ).fetchall()[0]
    streams = session.query(
        "SELECT count(*) FILTER (function SIMILAR TO 'f?open(64)?'), count(*) FILTER (function = 'fclose')"
        " FROM user_calls WHERE NOT failed AND file_id IS NOT NULL"
    ).fetchall()[0]
    assert handles["IoCreateHandle"] == made[0] + streams[0], (handles, made, streams)
    assert handles["IoDestroyHandle"] == made[1] + streams[1], (handles, made, streams)
    meta = session.meta
    assert clock.timer_resolution == 10**9
    ahead = meta["clock"]["start_monotonic_ns"] - clock.global_offset
    assert clock.realtime_timestamp == meta["clock"]["start_realtime_ns"] - ahead
    assert properties["CALLS_SEEN"] == meta["totals"]["seen"]
    assert properties["CALLS_LOST"] == meta["totals"]["lost"]
    counted = meta["totals"]["layers"].get("user_calls_counted", 0)
    assert properties["LIBRARY_CALLS_COUNTED"] == counted
    printed = subprocess.run(
        ["otf2-print", trace / "traces.otf2"], check=True, capture_output=True
    )
    assert b"warning" not in printed.stderr and b"error" not in printed.stderr, printed.stderr[:500]
    lines = Counter(line.split(b" ", 1)[0] for line in printed.stdout.splitlines())
    assert lines[b"ENTER"] == lines[b"LEAVE"] == regions.total()
    assert lines[b"IO_OPERATION_BEGIN"] == kinds["IoOperationBegin"]
    without = directory / (Path(path).name + ".calls")
    assert main([str(path), "-o", str(without), "--no-layers"]) == 0
    assert not any(":" in region[2] for region in found(without / "traces.otf2")[0])
    print(f"{regions.total()} regions and {sum(n for n, *_ in moved.values())} operations agree")


if __name__ == "__main__":
    for session in sys.argv[2:]:
        check(session, Path(sys.argv[1]))
