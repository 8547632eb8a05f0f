#!/usr/bin/env python3
"""Ships recordings to a directory and to an S3 server, and compares what DuckDB, ClickHouse (chDB), and Spark
read there with `fathom query`. The statements are the ones in docs/how-to/ship-sessions.md.

Needs root (it records), a built fathom, and: pip install 'moto[server]' boto3 duckdb chdb pyspark. Engines that are
not installed are named and left out. Usage: run.py [FATHOM]
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def s3_server():
    """A client and the address of an S3 server with an empty bucket, which the environment names."""
    import boto3

    number = port()
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(number)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        endpoint = f"http://127.0.0.1:{number}"
        os.environ.update(AWS_ENDPOINT_URL=endpoint, AWS_ALLOW_HTTP="true", AWS_REGION="us-east-1",
                          AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret", AWS_DEFAULT_REGION="us-east-1")
        client = boto3.client("s3", endpoint_url=endpoint)
        for _ in range(100):
            try:
                client.create_bucket(Bucket="bucket")
                break
            except Exception:
                time.sleep(0.2)
        yield client, endpoint
    finally:
        server.terminate()
        server.wait()


def store(work, sessions, lake, expected):
    """The same objects in an S3 server, listed and read by other clients."""
    with s3_server() as (client, endpoint):
        fathom("ship", *sessions, "--to", "s3://bucket/a/lake")
        pages = client.get_paginator("list_objects_v2").paginate(Bucket="bucket")
        objects = {o["Key"] for page in pages for o in page.get("Contents", [])}
        check("boto3, names", sorted(objects), sorted("a/lake/" + name for name in lake))
        bodies = {key: client.get_object(Bucket="bucket", Key=key)["Body"].read() for key in objects}
        check("boto3, contents", [[hashlib.sha256(bodies[key]).hexdigest()] for key in sorted(objects)],
              [[hashlib.sha256(lake[key.removeprefix("a/lake/")]).hexdigest()] for key in sorted(objects)])
        again = fathom("ship", *sessions, "--to", "s3://bucket/a/lake").stderr
        if again.count("all were there") != len(sessions):
            sys.exit(f"shipped twice: {again}")
        print("  second shipping: nothing uploaded")
        try:
            secret = (f"CREATE SECRET (TYPE s3, KEY_ID 'key', SECRET 'secret', REGION 'us-east-1', URL_STYLE 'path', "
                      f"USE_SSL false, ENDPOINT '{endpoint.removeprefix('http://')}')")
            duckdb_reads("s3://bucket/a/lake", expected, ["INSTALL httpfs", "LOAD httpfs", secret])
        except Exception as error:
            print(f"  left out: DuckDB over S3: {str(error).splitlines()[0]}")
            copy = work / "downloaded"
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
        try:
            import boto3, moto  # noqa: F401
        except ImportError as error:
            print(f"  left out: S3: {error}")
        else:
            store(work, sessions, objects, expected)
        print(f"{checked} checks passed")
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
