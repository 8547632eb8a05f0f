"""The committer: `python -m fathom.iceberg`."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import time
from collections.abc import Sequence

from .._program import FathomError
from . import Lake, Partition, Round, UsageError, commit_round

_DESCRIPTION = """
Add the sessions that `fathom ship` uploaded to Apache Iceberg tables, their Parquet files as they are.
Run it as often as you like: it adds each session once.
"""
_EPILOG = """
The catalog is configured as PyIceberg documents it: in .pyiceberg.yaml, in environment variables such
as PYICEBERG_CATALOG__FATHOM__URI, or by --property. Exit status: 0 if all sessions are in the tables, 1 if
not, 2 for wrong arguments.
"""


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m fathom.iceberg", description=_DESCRIPTION, epilog=_EPILOG
    )
    parser.add_argument(
        "--lake",
        required=True,
        metavar="URL|DIR",
        help="destination of `fathom ship`: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, or a directory",
    )
    parser.add_argument(
        "--catalog", default="fathom", metavar="NAME", help="catalog of the tables (fathom)"
    )
    parser.add_argument(
        "--property",
        action="append",
        default=[],
        type=_property,
        metavar="KEY=VALUE",
        help="property of the catalog, such as uri, warehouse, or s3.endpoint; other users of the "
        "host see the arguments of a program, so pass passwords in the environment",
    )
    parser.add_argument(
        "--namespace", default="fathom", help="namespace of the tables, made if missing (fathom)"
    )
    parser.add_argument(
        "--days",
        type=_positive,
        metavar="N",
        help="leave sessions alone that began more than N days ago; give it if an engine removes "
        "old sessions from the tables (all sessions)",
    )
    parser.add_argument(
        "--every",
        type=_positive,
        metavar="SECONDS",
        help="go on, with a round every SECONDS (one round)",
    )
    return parser.parse_args(given)


def _property(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 0 < number < 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 999999")
    return number


def _round(arguments: argparse.Namespace) -> tuple[Round, float]:
    """A round, and its seconds."""
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import (
            NoSuchNamespaceError,
            NoSuchTableError,
            RESTError,
            ValidationError,
        )
        from sqlalchemy.exc import SQLAlchemyError

        from ._tables import Tables
    except ImportError as error:
        raise UsageError(
            f"cannot load PyIceberg ({error}); install it: pip install './python[iceberg]'"
        ) from error
    started = time.monotonic()
    try:
        catalog = load_catalog(arguments.catalog, **dict(arguments.property))
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"cannot open catalog {arguments.catalog}: {error}; set its uri and warehouse"
        ) from error
    except (OSError, RESTError, SQLAlchemyError) as error:
        raise FathomError(f"cannot open catalog {arguments.catalog}: {_first(error)}") from error
    since = None
    if arguments.days is not None:
        today = datetime.datetime.now(datetime.UTC).date()
        since = today - datetime.timedelta(days=arguments.days)
    lake = Lake(arguments.lake, catalog.properties)
    try:
        done = commit_round(lake, Tables(catalog, arguments.namespace), since=since)
        return done, time.monotonic() - started
    except (
        NoSuchNamespaceError,
        NoSuchTableError,
        OSError,
        RESTError,
        SQLAlchemyError,
        ValidationError,
        ValueError,
    ) as error:
        raise FathomError(
            f"cannot add the sessions of {arguments.lake} to the tables of catalog "
            f"{arguments.catalog}: {_first(error)}; run it again, it continues"
        ) from error


def _first(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def _say(text: str) -> None:
    # Names of hosts may have any character.
    shown = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
    print(f"fathom: {shown}", file=sys.stderr, flush=True)


def _named(partition: Partition) -> str:
    host = "a host without a name" if partition.host is None else partition.host
    return f"session {partition.session} of {host}"


def _report(done: Round, seconds: float) -> None:
    for partition, reason in done.skipped.items():
        _say(f"skipped {_named(partition)}: {reason}")
    for partition in done.removed:
        _say(f"removed {_named(partition)}: it has left the lake")
    if done.files:
        _say(
            f"added {len(done.sessions)} sessions to {done.tables} tables in {seconds:.1f} s: "
            f"{done.files} files, {done.rows} rows"
        )
    elif not done.removed and not done.skipped:
        _say("no new sessions")


def main(given: Sequence[str] | None = None) -> int:
    """Runs the committer; returns its exit status."""
    arguments = _arguments(given)
    while True:
        started = time.monotonic()
        again = False
        try:
            done, seconds = _round(arguments)
            _report(done, seconds)
            again = bool(done.left)
            status = 1 if done.skipped else 0
        except UsageError as error:
            _say(str(error))
            return 2
        except FathomError as error:
            _say(str(error))
            status = 1
            if arguments.every is None:
                return status
        if again:
            continue
        if arguments.every is None:
            return status
        time.sleep(max(arguments.every - (time.monotonic() - started), 0))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        # As a shell reports it.
        os._exit(130)
