#!/usr/bin/env python3
"""Ships recordings to an S3 server and reads them with Trino, a coordinator that plans and two workers, by its Hive
connector with the statements of docs/how-to/ship-sessions.md. Compares the rows with `fathom query`. With PyIceberg and
a PostgreSQL server in PATH it then commits Iceberg tables and reads those by the Iceberg connector.

`./do test lake trino` installs what it needs and runs it as root, which recording needs. TRINO_HOME is the directory of Trino's server
with its plugins hive and iceberg, TRINO_JAVA_HOME a JDK of version 24 or newer.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

from engines import slowest
from lake import PAGE, check, compare, each, fathom, recorded, statements, truth, workplace
from servers import port, s3_server

HOME = os.environ["TRINO_HOME"]
JAVA_HOME = os.environ["TRINO_JAVA_HOME"]


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
def cluster(work, catalogs, workers):
    """A coordinator and workers, which have started and know each other. Without workers the coordinator does the work."""
    main = port()
    servers = []
    try:
        for number in range(1 + workers):
            place = work / f"trino-{number}"
            (place / "etc/catalog").mkdir(parents=True)
            http = main if number == 0 else port()
            (place / "etc/config.properties").write_text(
                f"coordinator={'true' if number == 0 else 'false'}\n"
                + ("node-scheduler.include-coordinator=false\n" if number == 0 and workers else "")
                + f"http-server.http.port={http}\ndiscovery.uri=http://127.0.0.1:{main}\nquery.max-memory=1GB\n"
                f"catalog.config-dir={place}/etc/catalog\nplugin.dir={HOME}/plugin\n")
            for name, text in catalogs.items():
                (place / f"etc/catalog/{name}.properties").write_text(text)
            command = [f"{JAVA_HOME}/bin/java", "-Xmx1536m", "--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow",
                       "--add-modules=jdk.incubator.vector", "-Djdk.attach.allowAttachSelf=true", f"-Dnode.id=node-{number}", "-Dnode.environment=test",
                       f"-Dnode.data-dir={place}", "-Dnode.internal-address=127.0.0.1", f"-Dconfig={place}/etc/config.properties",
                       "-cp", f"{HOME}/lib/*", "io.trino.server.TrinoServer"]
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


def hive_catalog(endpoint):
    [setting] = re.findall(r"^    (hive\..*)$", PAGE.read_text(), re.M)
    return ("connector.name=hive\nhive.metastore=file\nhive.metastore.catalog.dir=s3://bucket/metastore\n"
            f"{setting}\n" + s3(endpoint))


def iceberg_catalog(endpoint, uri):
    """The catalog of a committer's tables in PostgreSQL."""
    return s3(endpoint) + (
        "connector.name=iceberg\niceberg.catalog.type=jdbc\niceberg.jdbc-catalog.catalog-name=fathom\n"
        "iceberg.jdbc-catalog.driver-class=org.postgresql.Driver\niceberg.jdbc-catalog.connection-user=fathom\n"
        f"iceberg.jdbc-catalog.connection-url=jdbc:postgresql{uri.removeprefix('postgresql+psycopg2').replace('fathom@', '')}\n"
        "iceberg.jdbc-catalog.connection-password=none\niceberg.jdbc-catalog.default-warehouse-dir=s3://bucket/warehouse\n")


def hive(client, expected):
    """Answers of the lake at s3://bucket/a/lake."""
    for statement in each(statements("Trino")[0].replace("s3://bucket/PREFIX", "s3://bucket/a/lake")):
        client.run(statement)
    compare("Trino, Hive", client.run, expected)
    slowest("Trino", client.run)


def iceberg(client, place, sessions, numbers):
    """Iceberg tables of such numbers of sessions, which are committed while the engine runs."""
    client.catalog = "iceberg"
    for number in numbers:
        fathom("ship", *sessions[:number], "--to", place.lake)
        print(f"  {place.round().strip()}")
        compare(f"Trino, Iceberg, {number} sessions", client.run, truth(sessions[:number]))


def who_worked(client):
    """Only the workers read rows of the lake."""
    rows = client.run("""SELECT node_id, count(*), sum(raw_input_rows) FROM system.runtime.tasks JOIN system.runtime.queries USING (query_id)
        WHERE query LIKE '%JOIN sessions%' AND query NOT LIKE '%runtime%' AND raw_input_rows > 0 GROUP BY node_id""")
    print("  read by " + ", ".join(f"{node}: {count} rows in {tasks} tasks" for node, tasks, count in sorted(rows)))
    check("Trino, nodes that read rows", sorted(node for node, _, _ in rows), ["node-1", "node-2"])


def engine(work, sessions, numbers, workers):
    """Reads a lake in an S3 server as Hive tables, then as Iceberg tables."""
    from iceberg import Place, postgresql

    with s3_server() as (_, endpoint), postgresql(work) as uri:
        fathom("ship", *sessions, "--to", "s3://bucket/a/lake")
        expected = truth(sessions)
        print(f"seen, accounted, stored, rows: {expected[0][0]}")
        catalogs = {"hive": hive_catalog(endpoint)}
        if uri:
            catalogs["iceberg"] = iceberg_catalog(endpoint, uri)
        else:
            print("  left out: Iceberg: there is no PostgreSQL server")
        with cluster(work, catalogs, workers) as client:
            hive(client, expected)
            if workers:
                who_worked(client)
            if uri:
                place = Place("s3://bucket/a/iceberg", {"uri": uri, "warehouse": "s3://bucket/warehouse", "s3.endpoint": endpoint,
                                                        "s3.region": "us-east-1"})
                iceberg(client, place, sessions, numbers)


def main():
    with workplace("trino") as work:
        sessions = recorded(work)
        engine(work, sessions, [len(sessions) - 1, len(sessions)], workers=2)


if __name__ == "__main__":
    main()
