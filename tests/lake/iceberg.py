#!/usr/bin/env python3
"""Ships recordings while committers of Iceberg tables run, kills both at random moments, and compares the
tables with the lake and with `fathom query`. DuckDB, ClickHouse (chDB), Spark, and PyIceberg read them; the
statements are the ones in docs/how-to/ship-sessions.md.

`./do test lake iceberg` installs what it needs and runs it as root, which recording needs. A PostgreSQL server is used as a
catalog, and fake-gcs-server as Google Cloud Storage. If one of them is not there, it is named and left out.
"""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from engines import ENGINES, DuckDB
from iceberg_unfit import unfit
from lake import FATHOM, ROOT, check, compare, fathom, ordered, record, recorded, truth, workplace
from servers import MissingError, gcs, port, s3_server

sys.path.insert(0, str(ROOT / "python"))
# Before forks, so that those need not load them.
import pyiceberg.catalog.sql  # noqa: E402,F401
from fathom.iceberg import __main__ as committer, _tables  # noqa: E402,F401
from pyiceberg.catalog import load_catalog  # noqa: E402

KILLS = 20
# Status of a child.
PARTIAL = 10
SMALL = 16
SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
chance = random.Random(SEED)


class Place:
    """A lake and the catalog of its tables."""

    def __init__(self, lake, properties):
        self.lake = str(lake)
        self.properties = properties

    def words(self):
        return ["--lake", self.lake, *(word for pair in self.properties.items() for word in ("--property", "=".join(pair)))]

    def round(self):
        """A round as a user starts it; its messages."""
        command = [sys.executable, "-m", "fathom.iceberg", *self.words()]
        path = {"PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **path})
        if done.returncode:
            sys.exit(f"round: {done.stderr}")
        return done.stderr

    def catalog(self):
        return load_catalog("fathom", **self.properties)

    def tables(self):
        catalog = self.catalog()
        return {name[-1]: catalog.load_table(name) for name in catalog.list_tables("fathom")}


def forked(work):
    """Runs `work` in a child, which has all modules loaded; its process id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        status = work() or 0
    except BaseException as error:
        print(f"  child: {type(error).__name__}: {error}", flush=True)
    finally:
        os._exit(status)


def ended(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def markers(lake):
    """The objects with rows by table and partition, as the markers name them."""
    found = {}
    for file in Path(lake).glob("_sessions/**/session.json"):
        for one in json.loads(file.read_text())["objects"]:
            if one["rows"]:
                session = re.search(r"session=([^/]+)", one["path"])[1]
                found.setdefault(one["table"], {}).setdefault(session, {})[one["path"]] = one["rows"]
    return found


def found(place):
    """The same as the tables have it."""
    files = {}
    for name, table in place.tables().items():
        paths = Counter()
        for task in table.scan().plan_files():
            path = task.file.file_path.partition("/lake/")[2]
            session = re.search(r"session=([^/]+)", path)[1]
            paths[path] += 1
            files.setdefault(name, {}).setdefault(session, {})[path] = task.file.record_count
        twice = [path for path, times in paths.items() if times > 1]
        if twice:
            sys.exit(f"{name}: added twice: {twice[:3]}")
    return files


def whole(place):
    """Whether each session that is visible has all its files. Returns PARTIAL if one has files and is not visible."""
    there, wanted = found(place), markers(place.lake)
    shipped = wanted.get("sessions", {})
    # The others have left the lake since.
    for session in there.get("sessions", {}).keys() & shipped.keys():
        for name, sessions in wanted.items():
            if sessions.get(session) != there.get(name, {}).get(session):
                sys.exit(f"{name}: session {session} is visible and not whole")
    begun = {session for sessions in there.values() for session in sessions}
    return 0 if begun == set(there.get("sessions", {})) else PARTIAL


def kills(place, sessions):
    """Ships and commits while both are killed."""
    patience, rounds, interrupted, partial = 3.0, 0, 0, 0
    while interrupted < KILLS:
        rounds += 1
        if rounds > len(sessions) and rounds % 2:
            # Sessions that leave the lake, and come back in the next round.
            for directory in chance.sample(sorted(Path(place.lake).glob("_sessions/*/*/session=*")), 3):
                for one in Path(place.lake).glob(f"*/*/*/{directory.name}"):
                    shutil.rmtree(one)
            ships = sessions[:1]
        else:
            ships = sessions[:rounds]
        # The agent ships the same way.
        ship = subprocess.Popen([FATHOM, "ship", *ships, "--to", place.lake], stderr=subprocess.DEVNULL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            ship.wait(chance.uniform(0, 3))
        ship.kill()
        ship.wait()
        pids = [forked(lambda: committer.main(place.words())) for _ in range(chance.choice([1, 1, 2]))]
        time.sleep(chance.uniform(0, patience))
        killed = 0
        for pid in pids:
            done, _ = os.waitpid(pid, os.WNOHANG)
            if not done:
                os.kill(pid, signal.SIGKILL)
                killed += ended(pid) == -signal.SIGKILL
        interrupted += killed > 0
        patience = patience * 1.2 if killed else max(patience * 0.7, 0.5)
        status = ended(forked(lambda: whole(place)))
        if status not in (0, PARTIAL):
            sys.exit(f"after round {rounds}: status {status}")
        partial += status == PARTIAL
    print(f"  {rounds} rounds: committers were killed in {interrupted}, after {partial} a session was there in part; "
          f"each visible session was whole after each round (SEED={SEED})")


def together(place):
    """Committers at the same time, none of which is killed."""
    pids = [forked(lambda: committer.main(place.words())) for _ in range(3)]
    check("three committers at a time", [[ended(pid)] for pid in pids], [[0]] * 3)


def evolved(lake, directory):
    """A copy of a session as another version of fathom could write it: a column more, one less, one wider."""
    import pyarrow
    from pyarrow import parquet

    old = directory.name.removeprefix("session=")
    new = "f" * 32
    marker = json.loads((directory / "session.json").read_text())
    marker["session"] = new
    for one in marker["objects"]:
        source = lake / one["path"]
        one["path"] = one["path"].replace(old, new)
        target = lake / one["path"]
        target.parent.mkdir(parents=True)
        if one["table"] == "syscalls":
            rows = parquet.ParquetFile(source).read().drop_columns(["api"])
            rows = rows.append_column("later_ns", pyarrow.array(range(len(rows)), pyarrow.int64()))
            place = rows.schema.get_field_index("fd")
            rows = rows.set_column(place, "fd", rows["fd"].cast(pyarrow.int64()))
            parquet.write_table(rows, target)
        else:
            shutil.copy(source, target)
        one["bytes"] = target.stat().st_size
    target = Path(str(directory).replace(old, new))
    target.mkdir()
    (target / "session.json").write_text(json.dumps(marker))
    return old, new


def sums(table, sql):
    """Statement: rows and the sum of all whole numbers of a table, by session."""
    numbers = [f"coalesce(sum(CAST({name} AS DECIMAL(38, 0))), 0)" for name in table]
    return f"SELECT session, count(*), {' + '.join(numbers) or '0'} FROM {sql} GROUP BY session"


def scanned(place):
    """A database in memory with the tables as PyIceberg reads them."""
    memory = DuckDB()
    for name, table in place.tables().items():
        memory.db.register(name, table.scan().to_arrow())
    return memory


def pyiceberg_reads(place, expected):
    memory = scanned(place)
    compare("PyIceberg", memory.rows, expected)
    # Each number of each table, as the lake's files have them.
    for name, table in place.tables().items():
        columns = [field.name for field in table.schema().fields if str(field.field_type) in ("int", "long")]
        files = f"read_parquet('{place.lake}/{name}/**/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true)"
        check(f"PyIceberg, sums of {name}", ordered(memory.rows(sums(columns, name))), ordered(memory.rows(sums(columns, files))))


def latest(place):
    return {name: table.metadata_location.removeprefix("file://") for name, table in place.tables().items()}


def engines_read(place, expected):
    evolved_rows = ordered(evolution(place))
    for engine in ENGINES:
        opened = engine()
        opened.iceberg(latest(place))
        compare(engine.__name__, opened.rows, expected)
        check(f"{engine.__name__}, columns of another version", ordered(opened.rows(EVOLVED)), evolved_rows)
        opened.close()


# The column that the later version has added, the one that it lacks, and the one that is wider.
EVOLVED = "SELECT count(later_ns), sum(later_ns), count(api), sum(fd) FROM syscalls"


def evolution(place):
    files = f"read_parquet('{place.lake}/syscalls/**/*.parquet', union_by_name = true)"
    return DuckDB().rows(EVOLVED.replace("FROM syscalls", f"FROM {files}"))


def replaced(work, place, session):
    """A session that has changed, and one that has left the lake."""
    meta = json.loads((session / "session.json").read_text())
    at = meta["clock"]["start_realtime_ns"]
    span = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "x", "kind": 2,
            "startTimeUnixNano": str(at + 1000), "endTimeUnixNano": str(at + 2000)}
    (work / "spans.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    fathom("import", "--into", session, work / "spans.json")
    fathom("ship", "--force", session, "--to", place.lake)
    place.round()
    check("replaced session", sorted(places(found(place))), sorted(places(markers(place.lake))))
    check("its span", [[place.tables()["spans"].scan().to_arrow().num_rows]], [[1]])
    for directory in Path(place.lake).glob(f"*/date=*/host=*/session={meta['id']}"):
        shutil.rmtree(directory)
    if "has left the lake" not in place.round():
        sys.exit("a session that has left the lake was not removed")
    check("removed session", sorted(places(found(place))), sorted(places(markers(place.lake))))


def places(files):
    return [[name, session, path, rows] for name, sessions in files.items()
            for session, paths in sessions.items() for path, rows in paths.items()]


def costs(work, sessions):
    """Seconds and bytes of a round per session, for rounds of one session."""
    place = Place(work / "costs/lake", catalog_in(work / "costs"))
    for number, session in enumerate(sessions):
        fathom("ship", session, "--to", place.lake)
        before = metadata(work / "costs")
        said = place.round()
        seconds = re.search(r"in ([\d.]+) s", said)[1]
        print(f"  round {number + 1}: {seconds} s, {metadata(work / 'costs') - before} bytes more of metadata")


def metadata(directory):
    return sum(file.stat().st_size for file in (directory / "warehouse").rglob("*") if file.is_file())


def catalog_in(directory):
    (directory / "warehouse").mkdir(parents=True)
    return {"uri": f"sqlite:///{directory}/catalog.db", "warehouse": f"file://{directory}/warehouse"}


@contextlib.contextmanager
def postgresql(work):
    """The address of a server of PostgreSQL; None if there is no such program."""
    programs = [Path(shutil.which("initdb") or "/none")] + sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    programs = [program.parent for program in programs if program.exists()]
    if not programs:
        yield None
        return
    data, number = work / "postgresql", port()
    data.mkdir()
    shutil.chown(data, "nobody")
    os.chmod(work, 0o755)
    user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    subprocess.run([*user, programs[-1] / "initdb", "-D", data / "db", "-U", "fathom", "-A", "trust"], check=True,
                   stdout=subprocess.DEVNULL)
    server = subprocess.Popen([*user, programs[-1] / "postgres", "-D", data / "db", "-p", str(number), "-k", data,
                               "-h", "127.0.0.1"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            import psycopg2

            try:
                psycopg2.connect(host="127.0.0.1", port=number, user="fathom", dbname="postgres").close()
                break
            except psycopg2.OperationalError:
                time.sleep(0.2)
        yield f"postgresql+psycopg2://fathom@127.0.0.1:{number}/postgres"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


def in_store(what, place, sessions, expected):
    fathom("ship", *sessions, "--to", place.lake)
    together(place)
    print(f"  {place.round().strip()}")
    compare(what, scanned(place).rows, expected)


def store(work, sessions, expected):
    """A lake and a warehouse in an S3 server, and a catalog in PostgreSQL."""
    with s3_server() as (_, endpoint):
        with postgresql(work) as uri:
            place = Place("s3://bucket/lake", {
                "uri": uri or f"sqlite:///{work}/s3.db", "warehouse": "s3://bucket/warehouse",
                "s3.endpoint": endpoint, "s3.region": "us-east-1"})
            what = "PyIceberg, S3" + (" and PostgreSQL" if uri else "")
            in_store(what, place, sessions, expected)


def google_store(work, sessions, expected):
    """A lake and a warehouse in a server of Google Cloud Storage."""
    with gcs(work) as (url, _, endpoint):
        tomorrow = int((time.time() + 86_400) * 1000)
        place = Place(f"{url}/lake", {
            "uri": f"sqlite:///{work}/gcs.db", "warehouse": f"{url}/warehouse", "gcs.service.host": endpoint,
            "gcs.oauth2.token": "none", "gcs.oauth2.token-expires-at": str(tomorrow)})
        in_store("PyIceberg, Google Cloud Storage", place, sessions, expected)


def main():
    with workplace("iceberg") as work:
        (work / "unfit").mkdir()
        unfit(work / "unfit")
        large = recorded(work)
        small = [record(work, f"small{number}", [], "seq 9 > n; sync n") for number in range(SMALL)]
        # A host whose name needs an escape in the path.
        odd = work / "odd.fathom"
        name = f"{sys.executable} -c \"import socket; socket.sethostname('ü=1 %2F#?')\""
        record_there = f"{FATHOM} record -q -o {odd} -- sync {work}/files/m"
        subprocess.run(["unshare", "--uts", "sh", "-c", f"{name} && {record_there}"], check=True)
        sessions = [*large, *small, odd]
        place = Place(work / "lake", catalog_in(work))
        kills(place, sessions)
        fathom("ship", *sessions, "--to", place.lake)
        together(place)
        print(f"  {place.round().strip()}")
        check("files of the tables", sorted(places(found(place))), sorted(places(markers(place.lake))))
        snapshots = max(len(table.snapshots()) for table in place.tables().values())
        print(f"  {snapshots} snapshots of a table at most, {metadata(work)} bytes of metadata for {len(sessions)} sessions")
        costs(work, small[:2])

        old, new = evolved(Path(place.lake), next(Path(place.lake).glob(
            f"_sessions/*/*/session={json.loads((large[0] / 'session.json').read_text())['id']}")))
        place.round()
        expected = truth(sessions)
        check("odd host", [[row["host"]] for row in place.tables()["sessions"].scan().to_arrow().to_pylist()
                           if row["command"].startswith("sync ")], [["ü=1 %2F#?"]])
        first = truth(large[:1])
        with_copy = [[[a + b for a, b in zip(expected[0][0], first[0][0])]]]
        for rows, copied in zip(expected[1:], first[1:]):
            with_copy.append(ordered(rows + [[new if value == old else value for value in row] for row in copied]))
        pyiceberg_reads(place, with_copy)
        engines_read(place, with_copy)
        replaced(work, place, large[0])
        for kind in [store, google_store]:
            try:
                kind(work, small[:3], truth(small[:3]))
            except MissingError as error:
                print(f"  left out: {kind.__name__}: {error}")


if __name__ == "__main__":
    main()
