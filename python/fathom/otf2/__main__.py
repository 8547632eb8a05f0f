"""The export: `python -m fathom.otf2`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .._program import FathomError
from .._session import Session

_DESCRIPTION = """
Write a session as a trace in the Open Trace Format 2, for Vampir and other tools of HPC.
"""
_EPILOG = """
The trace is the file traces.otf2 in the directory, which must not exist before. Exit status: 0 if it was
written, 1 if not, 2 for wrong arguments.
"""


def main(given: Sequence[str] | None = None) -> int:
    """Runs the export; returns its exit status."""
    parser = argparse.ArgumentParser(
        "python -m fathom.otf2", description=_DESCRIPTION, epilog=_EPILOG
    )
    parser.add_argument("session", metavar="SESSION", help="directory that fathom record has written")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="directory of the trace")
    parser.add_argument(
        "--no-layers",
        action="store_true",
        help="leave out what happened inside system calls (table slices)",
    )
    arguments = parser.parse_args(given)
    try:
        # Without the bindings the rest is there.
        from ._trace import write

        with Session(arguments.session) as session:
            written = write(session, arguments.output, layers=not arguments.no_layers)
    except FathomError as error:
        _say(str(error))
        return 1
    _say(
        f"wrote {written.events} events of {written.threads} threads: {written.library_calls} library calls, "
        f"{written.system_calls} system calls, {written.layer_visits} visits of layers, {written.operations} "
        "operations on files"
    )
    for reason, count in written.without_row.items():
        _say(f"not in the trace: {count} {reason}" + ("" if reason.startswith("library") else " calls"))
    if written.overlapping:
        _say(f"without a region: {written.overlapping} that overlap others of their thread")
    if written.endless:
        _say(f"not in the trace: {written.endless} calls whose end is unknown")
    return 0


def _say(text: str) -> None:
    shown = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
    print(f"fathom: {shown}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
