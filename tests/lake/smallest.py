#!/usr/bin/env python3
"""The smallest form of each engine, for `./do test`. All read the same two small sessions, and answer as `fathom query` does.

Usage: smallest.py DIRECTORY sessions, then smallest.py DIRECTORY ENGINE
"""

import json
import os
import sys
from pathlib import Path

from engines import ClickHouse, DuckDB, Spark, reads
from lake import compare, fathom, record, truth
from servers import s3_server

WORK = Path(sys.argv[1])
SESSIONS = [WORK / "few.fathom", WORK / "counted.fathom"]
STORE = "s3://bucket/a/lake"


def sessions():
    """Records, ships to a directory, and makes Iceberg tables of that lake."""
    from iceberg import Place, catalog_in, latest
    from opensearch import jobs

    (WORK / "files").mkdir()
    jobs(WORK, "few", 20)
    record(WORK, "counted", ["--rows", "tail"], "for i in 1 2 3; do seq 2000 > n$i; sync n$i; cat n$i > m; done; ls /none; true")
    fathom("ship", *SESSIONS, "--to", WORK / "lake")
    place = Place(WORK / "lake", catalog_in(WORK))
    print(place.round().strip())
    (WORK / "expected.json").write_text(json.dumps([truth(SESSIONS), latest(place)]))


def expected():
    """The rows of each query, and the newest metadata of each Iceberg table."""
    return json.loads((WORK / "expected.json").read_text())


def in_process(engine):
    """Reads the directory, an S3 server, and the Iceberg tables."""
    rows, tables = expected()
    with s3_server():
        fathom("ship", *SESSIONS, "--to", STORE)
        reads(engine, rows, lake=str(WORK / "lake"), store=STORE, iceberg=tables)


def duckdb():
    in_process(DuckDB)


def clickhouse():
    in_process(ClickHouse)


def spark():
    rows, tables = expected()
    reads(Spark, rows, lake=str(WORK / "lake"), iceberg=tables)


def pyiceberg():
    """A committer, a lake, and a warehouse in an S3 server."""
    from iceberg import Place, scanned

    with s3_server() as (_, endpoint):
        fathom("ship", *SESSIONS, "--to", STORE)
        place = Place(STORE, {"uri": f"sqlite:///{WORK}/s3.db", "warehouse": "s3://bucket/warehouse", "s3.endpoint": endpoint,
                              "s3.region": "us-east-1"})
        print(place.round().strip())
        compare("PyIceberg", scanned(place).rows, expected()[0])


def trino():
    """One node."""
    from trino import engine

    engine(WORK, SESSIONS, [len(SESSIONS)], workers=0)


def opensearch():
    from opensearch import node, search_them

    with node(WORK) as one:
        search_them(one, WORK, SESSIONS)


if __name__ == "__main__":
    # Only the first compiler of Java's two, because these machines end before the second one pays.
    os.environ["JAVA_TOOL_OPTIONS"] = "-XX:TieredStopAtLevel=1"
    globals()[sys.argv[2]]()
