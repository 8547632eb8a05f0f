#!/usr/bin/env python3
"""Ships recordings to a directory and to servers of S3, Google Cloud Storage, and Azure, and compares what DuckDB,
ClickHouse (chDB), and Spark read there with `fathom query`. The statements are the ones in
docs/how-to/ship-sessions.md. `./do test lake stores` installs what it needs and runs it as root, which recording needs.

Without fake-gcs-server or azurite-blob in PATH, their stores are named and left out.
"""

import hashlib
import json
import shutil
import subprocess
import sys

from engines import ENGINES, ClickHouse, DuckDB, reads
from lake import FATHOM, check, fathom, record, recorded, truth, workplace
from servers import MissingError, azure, azure_sas, gcs, s3


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
    with kind(work) as (url, objects, _):
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
        if url.startswith("s3:"):
            for engine in [DuckDB, ClickHouse]:
                reads(engine, expected, store=f"{url}/a/lake")
            return
        copy = work / f"downloaded-{name}"
        for key, one in bodies.items():
            (copy / key).parent.mkdir(parents=True, exist_ok=True)
            (copy / key).write_bytes(one)
        reads(DuckDB, expected, lake=str(copy / "a/lake"))


def main():
    with workplace("stores") as work:
        # The last one has objects of more than 16 MiB, which are uploaded in pieces.
        sessions = [*recorded(work), record(work, "large", ["--content", "plain", "--content-max", "16384"],
                                            "dd if=/dev/urandom of=m bs=16384 count=1600 2> /dev/null; cat m > n")]
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
        for engine in ENGINES:
            reads(engine, expected, lake=str(lake))
        for kind in [s3, gcs, azure, azure_sas]:
            print(f"{kind.__name__}:")
            try:
                store(work, kind, sessions, objects, expected)
            except MissingError as error:
                print(f"  left out: {error}")


if __name__ == "__main__":
    main()
