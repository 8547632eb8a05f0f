#!/usr/bin/env python3
"""Ships recordings to a directory, imports the dashboard of deploy/superset into Apache Superset with the commands of
docs/how-to/ship-sessions.md, and opens it in Chromium. The rows that Superset answers to every chart are compared with
`fathom query`; then the same queries are sent again for one host, and with Trino as the database. The picture is
target/superset.png.

`./do test lake superset` installs what it needs and runs it as root, which recording needs. SUPERSET is the directory of
a virtual environment with tests/lake/superset.txt, NODE a program. Trino is left out without the variables of trino.py.
"""

import contextlib
import functools
import http.server
import json
import os
import re
import secrets
import shutil
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

import duckdb
import requests
import yaml
from lake import FATHOM, PAGE, ROOT, check, each, fathom, plain, query, recorded, statements, workplace
from servers import port

DEPLOY = ROOT / "deploy/superset"
BIN = Path(os.environ["SUPERSET"], "bin")
HOUR = 3_600_000_000_000
# Rows that a chart shows, where it does not show all.
LIMITS = {"1,000 slowest calls": 1000, "Seconds by call": 15}
PASSWORD = secrets.token_hex(8)
POD, CONTAINER = "0d5d1f4c-8a1e-4a4d-9d65-1f64f6a0a7b1", "3b1e5c0f7a9d2468ace013579bdf02468ace13579bdf02468ace13579bdf0246"
VOLUMES = f"/var/lib/kubelet/pods/{POD}/volumes/kubernetes.io~csi"
# Records on a host of some name, with a control group, and what the kubelet makes of a pod.
MACHINE = f"""set -e
work=$1 host=$2 group=$3; shift 3
hostname "$host"
mkdir "$work/$host"
mount -t cgroup2 none "$work/$host"
mkdir -p "$work/$host/$group"
mount -t tmpfs none /var/log
mount -t tmpfs none /var/lib
mkdir -p /var/log/containers {VOLUMES}/pvc-77/mount {VOLUMES}/scratch/mount
mount -t tmpfs none {VOLUMES}/pvc-77/mount
mount -t tmpfs none {VOLUMES}/scratch/mount
ln -s /var/log/pods/shop_db-0_{POD}/postgres/0.log /var/log/containers/db-0_shop_postgres-{CONTAINER}.log
"$@"
cd "$work/$host"
rmdir -p "$group" 2> /dev/null || true
"""
WORKLOAD = """echo $$ > "$1/cgroup.procs"; cd "$2"
for i in 1 2 3 4 5 6; do seq 30000 > n$i; sync n$i; cat n$i > copy; rm n$i; done
dd if=/dev/zero of=table bs=64k count=200 conv=fsync 2> /dev/null; cat table table > /dev/null; ls /none 2> /dev/null
[ -z "$3" ] || dd if=/dev/zero of="$3/spool" bs=1000 count=500 2> /dev/null"""


def on_machine(work, host, group, place, other="", options=()):
    """A session that was recorded on a host of this name."""
    session = work / f"{host}.fathom"
    command = [FATHOM, "record", "-q", *options, "-o", session, "--", "sh", "-c", WORKLOAD, "backup", work / host / group, place, other]
    done = subprocess.run(["unshare", "-mu", "sh", "-c", MACHINE, "sh", work, host, group, *command], capture_output=True, text=True)
    if done.returncode or not session.exists():
        sys.exit(f"recording on {host}: {done.stderr}")
    return session


@contextlib.contextmanager
def kubernetes(work):
    """Options of `fathom record` for an API of Kubernetes that knows the claim of one volume."""
    class Api(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            known = self.path == "/api/v1/persistentvolumes/pvc-77"
            claim = {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data-db-0"}
            body = json.dumps({"kind": "PersistentVolume", "metadata": {"name": "pvc-77"}, "spec": {"claimRef": claim}} if known else {}).encode()
            self.send_response(200 if known else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    (work / "token").write_text("token")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE",
                    "-keyout", work / "key.pem", "-out", work / "ca.pem"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(work / "ca.pem", work / "key.pem")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield ["--kubernetes", f"https://127.0.0.1:{server.server_address[1]}", "--kubernetes-ca", work / "ca.pem", "--kubernetes-token", work / "token"]
        finally:
            server.shutdown()
            thread.join()


def imported(work, days):
    """A log of strace of some days ago. It names no host."""
    now = time.time() - days * 86400
    lines = [f'{7 + n % 3} {now + n * 0.01:.6f} {call} <{0.00001 * (n + 1):.6f}>' for n, call in enumerate([
        'openat(AT_FDCWD, "/srv/log", O_RDWR) = 3', 'write(3, "x"..., 5000) = 5000', 'fsync(3) = 0', 'pread64(3, "x"..., 4096, 0) = 4096',
        'openat(AT_FDCWD, "/none", O_RDONLY) = -1 ENOENT (No such file or directory)', 'close(3) = 0'])]
    (work / f"log-{days}").write_text("\n".join(lines) + "\n")
    fathom("import", work / f"log-{days}", "-o", work / f"log-{days}.fathom")
    return work / f"log-{days}.fathom"


def sessions_of(work):
    """Sessions of three hosts and of none, of several days, with lost and counted calls."""
    with kubernetes(work) as options:
        pod = on_machine(work, "node-1", f"kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-containerd-{CONTAINER}.scope",
                         f"{VOLUMES}/pvc-77/mount", f"{VOLUMES}/scratch/mount", options)
    unit = on_machine(work, "db-1", "system.slice/backup.service", work / "files", options=["--rows", "tail"])
    return [pod, unit, *recorded(work), *(imported(work, days) for days in (1, 2, 4))]


class Session:
    """What `fathom query` knows of a session."""

    def __init__(self, path):
        self.path = path
        [own] = query(path, "SELECT *, epoch_ns(start_time) AS start_ns FROM session")
        self.own = {name: plain(own[name]) if name.endswith("_ns") else own[name] for name in own}
        self.host = own["host"] or "unknown"
        self.totals = json.loads((path / "session.json").read_text())["totals"]

    @functools.cache  # noqa: B019
    def rows(self, sql):
        """Rows with a column `host`. WALL in the statement is the difference between the clocks."""
        offset = self.own["start_ns"] - self.own["started_at_ns"]
        return [{**row, "host": self.host} for row in query(self.path, sql.replace("WALL", str(offset)))]


# Charts of sums by some columns: the columns, the query of each session, and its columns to add and to take the maximum of.
SUMS = ["calls", "errors", "bytes", "total_ns"], ["max_ns"]
DEVICE = ["requests", "bytes", "device_ns", "ended"], ["device_max_ns"]
GROUPED = {
    "Busiest hosts": (["host"], "SELECT * FROM by_syscall", SUMS),
    "Busiest files": (["host", "path", "fs_type"], "SELECT * FROM by_file", SUMS),
    "Busiest processes": (["host", "comm", "cmdline"], "SELECT * FROM by_process", SUMS),
    "Volumes": (["plugin", "volume", "claim"], "SELECT * REPLACE (namespace || '/' || claim AS claim) FROM by_volume", SUMS),
    "Tenants": (["host", "tenant"], "SELECT *, coalesce(namespace || '/' || pod, unit, cgroup) AS tenant FROM by_cgroup WHERE tenant IS NOT NULL", (SUMS[0], [])),
    "Errors": (["syscall", "errno"], "SELECT * FROM by_error", (["calls", "total_ns"], [])),
    "Seconds by call": (["syscall"], "SELECT * FROM by_syscall", (["total_ns"], [])),
    "Devices": (["host", "device", "op"], """SELECT * FROM by_device JOIN (
        SELECT device, op, count(completed_at_ns - issued_at_ns) AS ended FROM block GROUP BY ALL) USING (device, op)""", DEVICE),
}
# Columns of charts, as numbers of nanoseconds.
SECONDS, MILLISECONDS = {"seconds"}, {"slowest_ms", "mean_ms", "duration_ms"}
HOURS = f"""SELECT (ts_ns + WALL) // {HOUR} * {HOUR // 1_000_000} AS time, sum(calls)::BIGINT AS calls, coalesce(sum(bytes), 0)::BIGINT AS bytes FROM (
    SELECT ts_ns, 1 AS calls, bytes FROM syscalls UNION ALL SELECT ts_ns, count, bytes FROM counters
    UNION ALL SELECT first_at_ns, count, bytes FROM losses WHERE layer = 'syscall') GROUP BY ALL"""
SLOWEST = f"""SELECT (ts_ns + WALL) // 1000000 AS time, comm, pid, syscall, path, errno, bytes, dur_ns FROM syscalls
    WHERE dur_ns IS NOT NULL ORDER BY dur_ns DESC LIMIT {LIMITS['1,000 slowest calls']}"""


def grouped(sessions, keys, sql, numbers):
    """Sums over sessions."""
    added, largest = numbers
    groups = defaultdict(lambda: [0] * (len(added) + len(largest)))
    for row in (row for session in sessions for row in session.rows(sql)):
        sums = groups[tuple(row[key] for key in keys)]
        for at, name in enumerate(added + largest):
            value = plain(row[name]) or 0
            sums[at] = max(sums[at], value) if name in largest else sums[at] + value
    return [[*key, *sums] for key, sums in groups.items()]


def over_time(sessions, column):
    groups = defaultdict(int)
    for row in (row for session in sessions for row in session.rows(HOURS)):
        groups[plain(row["time"]), row["host"]] += plain(row[column])
    return [[*key, value] for key, value in groups.items()]


def expected(name, sessions):
    """The rows of a chart without its limit, and the place of the column by which it is ordered."""
    if name in GROUPED:
        rows = grouped(sessions, *GROUPED[name])
        at = {"Tenants": -1, "Errors": 2, "Seconds by call": 1, "Devices": 5}.get(name, -2)
        if name == "Devices":
            rows = [[*row[:5], *([row[5], round(row[5] / row[6]), row[7]] if row[6] else [None] * 3)] for row in rows]
        return rows, at
    calls = sum((session.rows("SELECT * FROM by_syscall") for session in sessions), [])
    numbers = {
        "Sessions": lambda: len(sessions),
        "Hosts": lambda: len({session.host for session in sessions} - {"unknown"}),
        "Calls": lambda: sum(session.totals["seen"] for session in sessions),
        "Bytes": lambda: sum(plain(row["bytes"]) for row in calls),
        "Failed": lambda: sum(plain(row["errors"]) for row in calls),
        "Lost": lambda: sum(session.totals["lost"] + session.totals["missing"] for session in sessions),
    }
    if name in numbers:
        return [[numbers[name]()]], 0
    if name == "Sessions by host":
        groups = defaultdict(int)
        for session in sessions:
            groups[session.own["start_ns"] // HOUR * HOUR // 1_000_000, session.host] += 1
        return [[*key, value] for key, value in groups.items()], 0
    if name in ("Calls by host", "Bytes by host"):
        return over_time(sessions, name.split()[0].lower()), 0
    if name == "1,000 slowest calls":
        columns = ["time", "host", "comm", "pid", "syscall", "path", "errno", "bytes", "dur_ns"]
        rows = [[row[column] for column in columns] for session in sessions for row in session.rows(SLOWEST)]
        return [[plain(row[0]), *row[1:-1], plain(row[-1])] for row in rows], -1
    if name == "Latest sessions":
        totals = ["seen", "stored", "counted", "expired", "lost", "missing"]
        return [[one.own["start_ns"] // 1_000_000, one.host, one.own["command"], one.own["duration_ns"], *(one.totals[t] for t in totals), None, one.own["id"]]
                for one in sessions], 0
    sys.exit(f"{name}: a chart that this test does not compare")


def found(chart, answer):
    """The rows of an answer, with times in nanoseconds."""
    rows = answer["data"]
    columns = answer["colnames"]
    if "by host" in chart:
        # A column per host.
        time_column, *hosts = columns
        return [[plain(row[time_column]), host, plain(row[host])] for row in rows for host in hosts if row[host] is not None]

    def value(column, of):
        if isinstance(of, float) and column in SECONDS | MILLISECONDS:
            return round(of * (1e9 if column in SECONDS else 1e6))
        return int(of) if isinstance(of, float) else of

    return [[value(column, row[column]) for column in columns] for row in rows]


def compare(what, chart, answer, sessions):
    rows, (all_rows, at) = found(chart, answer), expected(chart, sessions)
    if not (all_rows or "of one host" in what):
        sys.exit(f"{what}: nothing to compare")
    # The first rows, in any order of those of equal value.
    least = sorted((row[at] or 0 for row in all_rows), reverse=True)[: LIMITS.get(chart)]
    surplus = Counter(map(json.dumps, rows)) - Counter(map(json.dumps, all_rows))
    check(what, [row for row in rows if json.dumps(row) not in surplus], rows)
    check(f"{what}, values", sorted((row[at] or 0 for row in rows), reverse=True), least)


class Superset:
    """A server with a user `admin`, whose API is called."""

    def __init__(self, work):
        self.work, self.number = work, port()
        self.address = f"http://127.0.0.1:{self.number}"
        (work / "superset_config.py").write_text(
            f"SECRET_KEY = '{secrets.token_hex(32)}'\nSQLALCHEMY_DATABASE_URI = 'sqlite:///{work}/superset.db'\nTALISMAN_ENABLED = False\n")
        self.environment = {**os.environ, "SUPERSET_HOME": str(work), "SUPERSET_CONFIG_PATH": f"{work}/superset_config.py",
                            "FLASK_APP": "superset.app:create_app()", "PATH": f"{BIN}:{os.environ['PATH']}"}
        for words in [["db", "upgrade"], ["fab", "create-admin", "--username", "admin", "--firstname", "fathom", "--lastname", "test", "--email", "admin@localhost",
                                          "--password", PASSWORD], ["init"]]:
            self.run(["superset", *words])

    def run(self, command):
        done = subprocess.run(command, cwd=self.work, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{command}: {done.stdout[-1000:]}{done.stderr[-2000:]}")

    @contextlib.contextmanager
    def serving(self):
        with open(self.work / "superset.log", "wb") as log:
            server = subprocess.Popen([BIN / "gunicorn", "--threads", "8", "--timeout", "300", "--bind", f"127.0.0.1:{self.number}", "superset.app:create_app()"],
                                      cwd=self.work, env=self.environment, stdout=log, stderr=log)
        try:
            for _ in range(240):
                with contextlib.suppress(requests.ConnectionError):
                    requests.get(f"{self.address}/health", timeout=60)
                    break
                time.sleep(0.5)
            self.client = requests.Session()
            user = {"username": "admin", "password": PASSWORD, "provider": "db"}
            token = self.client.post(f"{self.address}/api/v1/security/login", json=user, timeout=60).json()["access_token"]
            self.client.headers["Authorization"] = f"Bearer {token}"
            self.client.headers["X-CSRFToken"] = self.ask("GET", "security/csrf_token/")["result"]
            yield self
        finally:
            server.terminate()
            server.wait()

    def ask(self, method, path, **body):
        answer = self.client.request(method, f"{self.address}/api/v1/{path}", timeout=300, **body)
        if answer.status_code != 200:
            sys.exit(f"{path}: {answer.status_code} {answer.text[:1000]}")
        return answer.json()


def import_dashboard(server, work):
    """The statements and commands of the page, for the lake in `work`."""
    section = PAGE.read_text().split("\n## Apache Superset\n")[1].split("\n## ")[0]
    with duckdb.connect(str(work / "fathom.duckdb")) as db:
        db.execute(statements("DuckDB")[0].replace("PREFIX", str(work / "lake")))
    [commands] = re.findall(r"```sh\n(.*?)```", section, re.S)
    shutil.copytree(DEPLOY, work / "deploy/superset")
    database = work / "deploy/superset/databases/fathom.yaml"
    text = database.read_text().replace("/var/lib/superset/fathom.duckdb", f"{work}/fathom.duckdb")
    if str(work) not in text:
        sys.exit(f"{database.name}: the URI is another one")
    database.write_text(text)
    server.run(["bash", "-ec", commands.replace("pip install", "true")])


def main():
    with workplace("superset") as work:
        paths = sessions_of(work)
        fathom("ship", *paths, "--to", work / "lake")
        server = Superset(work)
        import_dashboard(server, work)
        with server.serving():
            browse(server, work, [Session(path) for path in paths])


def browse(server, work, sessions):
    charts = {chart["id"]: chart["slice_name"] for chart in server.ask("GET", "dashboard/fathom/charts")["result"]}
    files = [yaml.safe_load(file.read_text())["slice_name"] for file in (DEPLOY / "charts").iterdir()]
    check("charts on the dashboard", sorted(charts.values()), sorted(files))
    picture = ROOT / "target/superset.png"
    chromium = os.environ.get("FATHOM_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    done = subprocess.run([os.environ.get("NODE", "node"), Path(__file__).with_suffix(".mjs"), chromium, server.address, PASSWORD, picture, str(len(charts))],
                          stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"the dashboard in Chromium: {done.stdout}\n{(work / 'superset.log').read_text()[-3000:]}")
    asked = json.loads(done.stdout)
    check("charts that the browser asked for", sorted(map(int, asked)), sorted(charts))
    for number, name in charts.items():
        one = asked[str(number)]
        [answer] = one["answer"]["result"]
        # Engines need not look into the partitions of other days.
        if not re.search(r"date >= '\d{4}-\d\d-\d\d'", answer["query"]):
            sys.exit(f"{name}: the query has no days: {answers[0]['query']}")
        compare(name, name, answer, sessions)
        for part in one["question"]["queries"]:
            part["filters"].append({"col": "host", "op": "IN", "val": ["node-1"]})
        [answer] = server.ask("POST", "chart/data", json=one["question"])["result"]
        compare(f"{name}, of one host", name, answer, [session for session in sessions if session.host == "node-1"])
    print(f"  picture: {picture}")
    on_trino(server, work, sessions, {name: asked[str(number)]["question"] for number, name in charts.items()})


def on_trino(server, work, sessions, questions):
    """The same from Trino, to which the database is changed as the page says."""
    if not (os.environ.get("TRINO_JAVA_HOME") and Path(os.environ.get("TRINO_HOME", ""), "lib").is_dir()):
        print("  left out: Trino is not there")
        return
    from trino import cluster

    catalog = ("connector.name=hive\nhive.metastore=file\nhive.metastore.catalog.dir=local:///metastore\nfs.native-local.enabled=true\n"
               f"local.location={work}\nhive.non-managed-table-writes-enabled=true\n")
    with cluster(work, {"hive": catalog}, 0) as client:
        for statement in each(statements("Trino")[0].replace("s3://bucket/PREFIX", "local:///lake").replace("s3://bucket", "local://")):
            client.run(statement)
        [database] = server.ask("GET", "database/")["result"]
        server.ask("PUT", f"database/{database['id']}", json={"sqlalchemy_uri": f"trino://test@{client.address.removeprefix('http://')}/hive/fathom"})
        for name, question in questions.items():
            for part in question["queries"]:
                part["filters"] = [one for one in part["filters"] if one["col"] != "host"]
            [answer] = server.ask("POST", "chart/data", json={**question, "force": True})["result"]
            compare(f"{name}, Trino", name, answer, sessions)


if __name__ == "__main__":
    main()
