"""Sessions of fathom in Python.

    import fathom

    session = fathom.open("run.fathom")
    session.sql("SELECT path, sum(bytes) FROM syscalls GROUP BY path").df()
    session.by_file().df()

    with fathom.record("block.fathom") as recording:
        work()
    recording.session.by_syscall().df()

Tables are read from the session's Parquet files; fathom itself is not needed. Views, diagnoses,
reports, and recordings run the program `fathom`: the one in the environment variable FATHOM, else
the one in PATH.
"""

from __future__ import annotations

from ._program import FathomError, diagnose, report
from ._record import Recording, record
from ._session import Session, open

__all__ = ["FathomError", "Recording", "Session", "diagnose", "open", "record", "report"]
