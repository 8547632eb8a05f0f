"""A collection as MongoDB keeps it in WiredTiger: a table of documents by record id, and an index from
`_id` to the record id.

    documents.py fill DIRECTORY ROWS shuffled|sorted    documents, inserted in this order of their _id
    documents.py index|natural DIRECTORY                all documents, in the order of _id or of record ids
    documents.py rewrite DIRECTORY                      the collection anew, in the order of _id
    documents.py blocks DIRECTORY                       offset and size of each block of a leaf page of the table

Scans print as JSON how many documents there are, and what WiredTiger says that it has read.
"""

import json
import os
import random
import re
import struct
import subprocess
import sys

import wiredtiger
from wiredtiger import stat

# The options with which MongoDB creates them, without compression: that needs a library.
COLLECTION = (
    "access_pattern_hint=none,allocation_size=4KB,checksum=on,internal_page_max=4KB,"
    "key_format=q,leaf_page_max=32KB,leaf_value_max=64MB,memory_page_max=10m,prefix_compression=false,"
    "split_pct=90,value_format=u"
)
INDEX = (
    "type=file,internal_page_max=16k,leaf_page_max=16k,checksum=on,prefix_compression=true,"
    "key_format=u,value_format=u"
)


def connect(directory):
    # All pages fit: each is read once.
    settings = "create,cache_size=1GB,checkpoint=(wait=0),log=(enabled=false),statistics=(fast)"
    return wiredtiger.wiredtiger_open(directory, settings)


def document(key):
    """_id, in front of the rest, as in BSON; always the same for one _id."""
    return struct.pack(">Q", key) + random.Random(key).randbytes(3500)


def fill(session, keys, collection, index):
    session.create(f"table:{collection}", COLLECTION)
    session.create(f"table:{index}", INDEX)
    documents = session.open_cursor(f"table:{collection}")
    ids = session.open_cursor(f"table:{index}")
    for record, key in enumerate(keys, 1):
        documents[record] = document(key)
        ids[struct.pack(">Q", key)] = struct.pack(">q", record)
    documents.close()
    ids.close()


def scan(session, by_index):
    documents = session.open_cursor("table:collection")
    count = total = 0
    before = -1
    if by_index:
        ids = session.open_cursor("table:index")
        for _, record in ids:
            body = documents[struct.unpack(">q", record)[0]]
            key = struct.unpack(">Q", body[:8])[0]
            assert key == before + 1, "not in the order of _id"
            before, count, total = key, count + 1, total + len(body)
    else:
        for _, body in documents:
            count, total = count + 1, total + len(body)
    return count, total


def main(what, directory, *more):
    if what == "fill":
        os.mkdir(directory)
        keys = list(range(int(more[0])))
        if more[1] == "shuffled":
            random.Random(1).shuffle(keys)
        connection = connect(directory)
        fill(connection.open_session(), keys, "collection", "index")
        connection.close()
    elif what == "rewrite":
        connection = connect(directory)
        session = connection.open_session()
        documents = session.open_cursor("table:collection")
        ids = session.open_cursor("table:index")
        keys = [struct.unpack(">Q", key)[0] for key, _ in ids]
        documents.close()
        ids.close()
        fill(session, keys, "sorted", "sorted-index")
        connection.close()
        # A table that was just written cannot be renamed.
        connection = connect(directory)
        session = connection.open_session()
        for old, new in (("collection", "sorted"), ("index", "sorted-index")):
            session.drop(f"table:{old}")
            session.rename(f"table:{new}", f"table:{old}")
        connection.close()
    elif what == "blocks":
        # WiredTiger prints them itself.
        if not more:
            command = [sys.executable, __file__, what, directory, "print"]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            for offset, end in re.findall(r"\[0: (\d+)-(\d+), .* leaf ", text):
                print(f"{offset},{int(end) - int(offset)}")
            return
        connection = connect(directory)
        connection.open_session().verify("file:collection.wt", "dump_address")
        connection.close()
    else:
        connection = connect(directory)
        session = connection.open_session()
        count, total = scan(session, what == "index")
        statistics = session.open_cursor("statistics:")
        print(
            json.dumps(
                {
                    "documents": count,
                    "bytes": total,
                    "block_bytes_read": statistics[stat.conn.block_byte_read][2],
                }
            )
        )
        connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
