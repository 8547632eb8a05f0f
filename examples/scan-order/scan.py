"""A table whose rows were inserted in random order, and two scans of it.

    scan.py fill DATABASE ROWS
    scan.py index|table DATABASE      all rows, in the order of an index or of the file
    scan.py rebuild DATABASE          the table anew, in the order of its index
"""

import random
import sqlite3
import sys

what, name = sys.argv[1], sys.argv[2]
database = sqlite3.connect(name)
database.execute("PRAGMA mmap_size = 0")

if what == "fill":
    keys = list(range(int(sys.argv[3])))
    random.Random(1).shuffle(keys)
    database.execute("CREATE TABLE documents (id INTEGER, body BLOB)")
    database.executemany(
        "INSERT INTO documents VALUES (?, ?)",
        ((key, random.Random(key).randbytes(3500)) for key in keys),
    )
    database.execute("CREATE UNIQUE INDEX by_id ON documents (id)")
    database.commit()
elif what == "rebuild":
    database.executescript(
        """
        PRAGMA cache_size = -65536;
        BEGIN;
        CREATE TABLE sorted AS SELECT * FROM documents ORDER BY id;
        DROP TABLE documents;
        ALTER TABLE sorted RENAME TO documents;
        CREATE UNIQUE INDEX by_id ON documents (id);
        COMMIT;
        VACUUM;
        """
    )
else:
    order = {"index": "INDEXED BY by_id ORDER BY id", "table": "NOT INDEXED"}[what]
    total = 0
    for _, body in database.execute(f"SELECT id, body FROM documents {order}"):
        total += len(body)
    print(total)
