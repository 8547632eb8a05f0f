#!/usr/bin/env python3
"""Ships recordings to an S3 server and reads them with Trino, a coordinator that plans and two workers, by its Hive
connector with the statements of docs/how-to/ship-sessions.md. Compares the rows with `fathom query`. With PyIceberg and
a PostgreSQL server in PATH it then commits Iceberg tables and reads those by the Iceberg connector.

Needs root (it records), a built fathom, and: pip install 'moto[server]>=5.2.5' boto3. Trino is Maven's io.trino:trino-server,
800 MB, kept in fathom's cache; TRINO_VERSION and TRINO_JAVA_HOME choose another version and
JDK. Usage: trino.py [FATHOM]
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import run
from run import check, compare, fathom, record, statements, truth
from stores import cache, port, s3_server

# A JDK of version 24 or newer.
JAVA_HOME = os.environ.get("TRINO_JAVA_HOME", "/usr/lib/jvm/temurin-25-jdk-amd64")
VERSION = os.environ.get("TRINO_VERSION", "476")
PLUGINS = ["hive", "iceberg"]


def server():
    """The directory of Trino's server."""
    kept = cache()
    place = kept / f"trino-server-{VERSION}"
    if not (place / "complete").exists():
        kept.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept) as scratch:
            subprocess.run(["mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy", "-Dmdep.useBaseVersion=true",
                            f"-Dartifact=io.trino:trino-server:{VERSION}:tar.gz", f"-DoutputDirectory={scratch}"], check=True)
            subprocess.run(["tar", "xzf", f"trino-server-{VERSION}.tar.gz"], cwd=scratch, check=True)
            for plugin in Path(scratch, f"trino-server-{VERSION}/plugin").iterdir():
                if plugin.name not in PLUGINS:
                    shutil.rmtree(plugin)
            shutil.rmtree(place, ignore_errors=True)
            shutil.move(Path(scratch, f"trino-server-{VERSION}"), place)
        (place / "complete").touch()
    return place


class Trino:
    """A client of the coordinator."""

    def __init__(self, address):
        self.address = address

    def ask(self, url, body=None):
        headers = {"X-Trino-User": "test", "X-Trino-Catalog": self.catalog, "X-Trino-Schema": "fathom"}
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=120) as answer:
            return json.load(answer)

    catalog = "hive"

    def run(self, sql):
        answer, rows = self.ask(f"{self.address}/v1/statement", sql.encode()), []
        while True:
            if "error" in answer:
                raise RuntimeError(f"{answer['error']['message']}: {sql}")
            rows += answer.get("data", [])
            if "nextUri" not in answer:
                return rows
            answer = self.ask(answer["nextUri"])


@contextlib.contextmanager
def cluster(work, home, catalogs, workers=2):
    """A coordinator and workers, which have started and know each other."""
    main = port()
    servers = []
    try:
        for number in range(1 + workers):
            place = work / f"trino-{number}"
            (place / "etc/catalog").mkdir(parents=True)
            http = main if number == 0 else port()
            (place / "etc/config.properties").write_text(
                f"coordinator={'true' if number == 0 else 'false'}\n"
                + ("node-scheduler.include-coordinator=false\n" if number == 0 else "")
                + f"http-server.http.port={http}\ndiscovery.uri=http://127.0.0.1:{main}\nquery.max-memory=1GB\n"
                f"catalog.config-dir={place}/etc/catalog\nplugin.dir={home}/plugin\n")
            for name, text in catalogs.items():
                (place / f"etc/catalog/{name}.properties").write_text(text)
            command = [f"{JAVA_HOME}/bin/java", "-Xmx1536m", "--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow",
                       "--add-modules=jdk.incubator.vector", "-Djdk.attach.allowAttachSelf=true", f"-Dnode.id=node-{number}", "-Dnode.environment=test",
                       f"-Dnode.data-dir={place}", "-Dnode.internal-address=127.0.0.1", f"-Dconfig={place}/etc/config.properties",
                       "-cp", f"{home}/lib/*", "io.trino.server.TrinoServer"]
            with open(place / "log", "wb") as log:
                servers.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=place))
        client = Trino(f"http://127.0.0.1:{main}")
        for _ in range(300):
            for number, one in enumerate(servers):
                if one.poll() is not None:
                    sys.exit(f"Trino's node {number} ended:\n{(work / f'trino-{number}/log').read_text()[-3000:]}")
            with contextlib.suppress(OSError, RuntimeError):
                nodes = client.run("SELECT node_id, coordinator, node_version FROM system.runtime.nodes WHERE state = 'active'")
                if len(nodes) == len(servers):
                    print(f"Trino {nodes[0][2]}: " + ", ".join(f"{name} {'coordinates' if first else 'works'}" for name, first, _ in sorted(nodes)))
                    break
            time.sleep(1)
        else:
            sys.exit(f"Trino did not start:\n{(work / 'trino-0/log').read_text()[-3000:]}")
        yield client
    finally:
        for one in servers:
            one.send_signal(signal.SIGTERM)
        for one in servers:
            try:
                one.wait(30)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()


def s3(endpoint):
    return (f"fs.native-s3.enabled=true\ns3.endpoint={endpoint}\ns3.region=us-east-1\ns3.path-style-access=true\n"
            "s3.aws-access-key=key\ns3.aws-secret-key=secret\n")


def hive(client, expected):
    for statement in statements("Trino")[0].strip().split(";\n"):
        client.run(statement.strip().rstrip(";").replace("s3://bucket/PREFIX", "s3://bucket/a/lake"))
    compare("Trino, Hive", client.run, expected)
    slowest = statements("Trino")[1]
    check("Trino, slowest calls", [[len(client.run(slowest.strip().replace("WHERE date = '2026-01-31' ", "")))]], [[10]])


def iceberg(client, place, sessions):
    """Iceberg tables of the same lake. The last session is committed while the engine runs."""
    client.catalog = "iceberg"
    for number in [len(sessions) - 1, len(sessions)]:
        fathom("ship", *sessions[:number], "--to", place.lake)
        print(f"  {place.round().strip()}")
        compare(f"Trino, Iceberg, {number} sessions", client.run, truth(sessions[:number]))


def who_worked(client):
    """Only the workers read rows of the lake."""
    rows = client.run("""SELECT node_id, count(*), sum(raw_input_rows) FROM system.runtime.tasks JOIN system.runtime.queries USING (query_id)
        WHERE query LIKE '%JOIN sessions%' AND query NOT LIKE '%runtime%' AND raw_input_rows > 0 GROUP BY node_id""")
    print("  read by " + ", ".join(f"{node}: {count} rows in {tasks} tasks" for node, tasks, count in sorted(rows)))
    check("Trino, nodes that read rows", sorted(node for node, _, _ in rows), ["node-1", "node-2"])


def main():
    work = Path(tempfile.mkdtemp(prefix="fathom-trino-", dir="/var/tmp"))
    try:
        home = server()
        (work / "files").mkdir()
        files = "for i in 1 2 3 4 5 6 7 8; do seq 20000 > n$i; sync n$i; cat n$i > m; rm n$i; done; ls /none; true"
        sessions = [
            record(work, "whole", ["--label", "site=a"], files),
            record(work, "counted", ["--rows", "tail"], files),
            record(work, "lost", ["--ring-mib", "1", "--syscalls", "all"], "dd if=/dev/zero of=/dev/null bs=1 count=1500000 2> /dev/null"),
        ]
        with contextlib.ExitStack() as stack:
            _, endpoint = stack.enter_context(s3_server())
            fathom("ship", *sessions, "--to", "s3://bucket/a/lake")
            expected = truth(sessions)
            print(f"seen, accounted, stored, rows: {expected[0][0]}")
            [setting] = re.findall(r"^    (hive\..*)$", run.PAGE.read_text(), re.M)
            catalogs = {"hive": "connector.name=hive\nhive.metastore=file\nhive.metastore.catalog.dir=s3://bucket/metastore\n"
                                f"{setting}\n" + s3(endpoint)}
            place = None
            try:
                from iceberg import Place, postgresql
            except ImportError as error:
                print(f"  left out: Iceberg: {error}")
            else:
                uri = stack.enter_context(postgresql(work))
                if uri:
                    place = Place("s3://bucket/a/iceberg", {"uri": uri, "warehouse": "s3://bucket/warehouse", "s3.endpoint": endpoint,
                                                           "s3.region": "us-east-1"})
                    catalogs["iceberg"] = s3(endpoint) + (
                        "connector.name=iceberg\niceberg.catalog.type=jdbc\niceberg.jdbc-catalog.catalog-name=fathom\n"
                        "iceberg.jdbc-catalog.driver-class=org.postgresql.Driver\niceberg.jdbc-catalog.connection-user=fathom\n"
                        f"iceberg.jdbc-catalog.connection-url=jdbc:postgresql{uri.removeprefix('postgresql+psycopg2').replace('fathom@', '')}\n"
                        "iceberg.jdbc-catalog.connection-password=none\niceberg.jdbc-catalog.default-warehouse-dir=s3://bucket/warehouse\n")
                else:
                    print("  left out: Iceberg: there is no PostgreSQL server")
            client = stack.enter_context(cluster(work, home, catalogs))
            hive(client, expected)
            who_worked(client)
            if place:
                iceberg(client, place, sessions)
        print(f"{run.checked} checks passed")
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
