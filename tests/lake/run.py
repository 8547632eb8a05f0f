#!/usr/bin/env python3
"""Ships recordings to a directory and to servers of S3, Google Cloud Storage, and Azure, and compares what DuckDB,
ClickHouse (chDB), and Spark read there with `fathom query`. The statements are the ones in
docs/how-to/ship-sessions.md.

Needs root (it records), a built fathom, and: pip install 'moto[server]>=5.2.5' boto3 duckdb chdb pyspark
google-cloud-storage azure-storage-blob; go install github.com/fsouza/fake-gcs-server@latest; npm install azurite, with
azurite-blob in PATH. What is missing is named and left out. Usage: run.py [FATHOM]
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from stores import azure, azure_sas, gcs, s3

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/how-to/ship-sessions.md"
FATHOM = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "target/release/fathom")
# The same sums by fathom, per session: the shipped views without percentiles.
TRUTH = [
    "SELECT seen, seen AS accounted, stored, (SELECT count(*) FROM syscalls) AS stored_rows FROM session",
    "SELECT syscall, calls, lost, errors, bytes, total_ns, max_ns FROM by_syscall",
    "SELECT file_id, path, calls, lost, errors, bytes, total_ns, max_ns FROM by_file",
    "SELECT device, op, requests, bytes, device_ns FROM by_device",
]
checked = 0


def check(what, found, expected):
    global checked
    if found != expected:
        missing = [row for row in expected if row not in found][:3]
        surplus = [row for row in found if row not in expected][:3]
        sys.exit(f"{what}: differs; missing {missing}, surplus {surplus}")
    checked += 1
    print(f"  {what}: {len(found)} rows as expected")


def statements(heading):
    """The SQL below a heading of the page."""
    text = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```sql\n(.*?)```", text, re.S)


def plain(value):
    if value is None or isinstance(value, str):
        return value
    return int(value)


def ordered(rows):
    return sorted(([plain(v) for v in row] for row in rows), key=lambda row: [str(v) for v in row])


def fathom(*words):
    done = subprocess.run([FATHOM, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"fathom {' '.join(map(str, words))}: {done.stderr}")
    return done


def record(work, name, options, command):
    session = work / f"{name}.fathom"
    fathom("record", "-q", *options, "-o", session, "--", "sh", "-c", f"cd {work}/files && {command}")
    return session


def truth(sessions):
    """Rows of each query over all sessions, with the id of the session in front but for the first."""
    answers = [[] for _ in TRUTH]
    for session in sessions:
        ident = json.loads(fathom("query", session, "SELECT id FROM session", "--format", "json").stdout)[0]["id"]
        for answer, sql in zip(answers, TRUTH):
            rows = json.loads(fathom("query", session, sql, "--format", "json").stdout)
            answer += [[ident, *row.values()] for row in rows]
    totals = [sum(int(row[i]) for row in answers[0]) for i in range(1, 5)]
    texts = {0, 1, 2}
    rows = [[[v if i in texts and not str(v).isdigit() else plain(v) for i, v in enumerate(row)] for row in answer]
            for answer in answers[1:]]
    return [[totals], *map(ordered, rows)]


def compare(engine, run, expected):
    for sql, rows, name in zip(statements("Queries"), expected, ["identity", "by_syscall", "by_file", "by_device"]):
        check(f"{engine}, {name}", ordered(run(sql)), rows)


def duckdb_reads(prefix, expected, before=()):
    import duckdb

    db = duckdb.connect()
    for statement in before:
        db.execute(statement)
    views, slowest = statements("DuckDB")
    db.execute(views.replace("PREFIX", prefix))
    compare("DuckDB", lambda sql: db.execute(sql).fetchall(), expected)
    slowest = slowest.replace("WHERE date = '2026-01-31' ", "")
    check("DuckDB, slowest calls", [[len(db.execute(slowest).fetchall())]], [[10]])


def clickhouse_reads(prefix, expected):
    from chdb import session

    server = session.Session()
    server.query("CREATE DATABASE lake")
    server.query("USE lake")
    for name in re.findall(r"SET (\w+ = \d)", PAGE.read_text()):
        server.query(f"SET {name}")
    for statement in statements("ClickHouse")[0].replace("PREFIX", prefix).strip().split(";\n"):
        server.query(statement.strip().rstrip(";"))

    def run(sql):
        text = str(server.query(sql, "JSONCompact"))
        return [[int(v) if isinstance(v, str) and re.fullmatch(r"-?\d+", v) else v for v in row]
                for row in json.loads(text)["data"]]

    compare("ClickHouse", run, expected)
    server.close()


def spark_reads(prefix, expected):
    from pyspark.sql import SparkSession

    spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
             .config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
             .config("spark.sql.shuffle.partitions", "2").getOrCreate())
    spark.sparkContext.setLogLevel("ERROR")
    for statement in statements("Spark")[0].replace("PREFIX", prefix).strip().split(";\n"):
        spark.sql(statement.strip().rstrip(";"))
    compare("Spark", lambda sql: [list(row) for row in spark.sql(sql).collect()], expected)
    spark.stop()


def replaced(work, session, destination):
    """Ships the session changed, and then as it was."""
    changed = work / "changed.fathom"
    shutil.copytree(session, changed)
    (work / "extra.csv").write_text("n\n1\n")
    fathom("import", "--into", changed, "--table", "extra", work / "extra.csv")
    refused = subprocess.run([FATHOM, "ship", changed, "--to", destination], capture_output=True, text=True)
    if not refused.returncode or "--force" not in refused.stderr:
        sys.exit(f"a session that has changed was shipped: {refused.stderr}")
    for one in [changed, session]:
        fathom("ship", "--force", one, "--to", destination)
    shutil.rmtree(changed)


def hashes(bodies):
    return [[key, hashlib.sha256(bodies[key]).hexdigest()] for key in sorted(bodies)]


def store(work, kind, sessions, lake, expected):
    """The same objects in a store, listed and read by the client of its owner."""
    with kind(work) as (url, objects, endpoint):
        name = kind.__name__
        fathom("ship", *sessions, "--to", f"{url}/a/lake")
        bodies = objects()
        check(f"{name}, names", sorted(bodies), sorted("a/lake/" + path for path in lake))
        check(f"{name}, contents", hashes(bodies), hashes({"a/lake/" + path: body for path, body in lake.items()}))
        largest = max(map(len, bodies.values()))
        check(f"{name}, an object of several pieces", [[largest > 16 << 20]], [[True]])
        again = fathom("ship", *sessions, "--to", f"{url}/a/lake").stderr
        if again.count("all were there") != len(sessions):
            sys.exit(f"shipped twice: {again}")
        print("  second shipping: nothing uploaded")
        replaced(work, sessions[0], f"{url}/a/lake")
        after = objects()
        check(f"{name}, after a session was replaced twice", hashes(after), hashes(bodies))
        try:
            duckdb_reads_store(work / f"downloaded-{name}", bodies, url, endpoint, expected)
        except ImportError as error:
            print(f"  left out: DuckDB: {error}")


def duckdb_reads_store(copy, bodies, url, endpoint, expected):
    """DuckDB reads S3, if it can get its extension, and otherwise a copy of the objects."""
    if url.startswith("s3:"):
        secret = (f"CREATE SECRET (TYPE s3, KEY_ID 'key', SECRET 'secret', REGION 'us-east-1', URL_STYLE 'path', "
                  f"USE_SSL false, ENDPOINT '{endpoint.removeprefix('http://')}')")
        try:
            return duckdb_reads(f"{url}/a/lake", expected, ["INSTALL httpfs", "LOAD httpfs", secret])
        except ImportError:
            raise
        except Exception as error:
            print(f"  left out: DuckDB over S3: {str(error).splitlines()[0]}")
    for key, body in bodies.items():
        (copy / key).parent.mkdir(parents=True, exist_ok=True)
        (copy / key).write_bytes(body)
    duckdb_reads(str(copy / "a/lake"), expected)


def main():
    work = Path(tempfile.mkdtemp(prefix="fathom-lake-", dir="/var/tmp"))
    try:
        (work / "files").mkdir()
        files = "for i in 1 2 3 4 5 6 7 8; do seq 20000 > n$i; sync n$i; cat n$i > m; rm n$i; done; ls /none; true"
        sessions = [
            record(work, "whole", ["--label", "site=a"], files),
            record(work, "counted", ["--rows", "tail"], files),
            # A ring that is too small: losses.
            record(work, "lost", ["--ring-mib", "1", "--syscalls", "all"],
                   "dd if=/dev/zero of=/dev/null bs=1 count=1500000 2> /dev/null"),
            # Objects of more than 16 MiB, which are uploaded in pieces.
            record(work, "large", ["--content", "plain", "--content-max", "16384"],
                   "dd if=/dev/urandom of=m bs=16384 count=1600 2> /dev/null; cat m > n"),
        ]
        lake = work / "lake"
        fathom("ship", *sessions, "--to", lake)
        objects = {str(p.relative_to(lake)): p.read_bytes() for p in lake.rglob("*") if p.is_file()}
        for name, body in objects.items():
            if name.endswith("session.json"):
                for one in json.loads(body)["objects"]:
                    found = objects[one["path"]]
                    if (len(found), hashlib.sha256(found).hexdigest()) != (one["bytes"], one["sha256"]):
                        sys.exit(f"{one['path']}: not as the marker says")
        print(f"{len(objects)} objects in {len(sessions)} sessions, as their markers say")
        expected = truth(sessions)
        print(f"seen, accounted, stored, rows: {expected[0][0]}")
        for engine, package, reads in [("DuckDB", "duckdb", duckdb_reads), ("ClickHouse", "chdb", clickhouse_reads),
                                       ("Spark", "pyspark", spark_reads)]:
            try:
                __import__(package)
            except ImportError:
                print(f"  left out: {engine}: {package} is not installed")
                continue
            reads(str(lake), expected)
        for kind in [s3, gcs, azure, azure_sas]:
            print(f"{kind.__name__}:")
            try:
                store(work, kind, sessions, objects, expected)
            except ImportError as error:
                print(f"  left out: {error}")
        print(f"{checked} checks passed")
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
