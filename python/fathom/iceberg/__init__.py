"""Apache Iceberg tables over a lake of `fathom ship`.

    python -m fathom.iceberg --lake s3://bucket/fathom --catalog fathom

A round adds the sessions of the lake that the tables do not have. It adds the Parquet files as they
are, by one snapshot per table. docs/how-to/query-with-iceberg.md is the how-to page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._lake import Lake, Partition, UsageError
from ._round import Round, commit_round

if TYPE_CHECKING:
    from ._tables import Tables

__all__ = ["Lake", "Partition", "Round", "Tables", "UsageError", "commit_round"]


def __getattr__(name: str) -> Any:
    # It needs PyIceberg.
    if name == "Tables":
        from ._tables import Tables

        return Tables
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
