"""The texts of a list of hits, from an index that nobody read since the start of the machine."""
import random
import sys
import lmdb

random.seed(4)
hits = [random.randrange(140000) for _ in range(24000)]
if len(sys.argv) > 1:
    with open("index/data.mdb", "rb") as f:      # what pays for a tenth and more of the pages: read all of it ahead
        while f.read(1 << 20):
            pass
env = lmdb.open("index", readonly=True, map_size=1 << 30, readahead=False)
total = 0
with env.begin() as txn:
    for n in hits:
        total += len(txn.get(b"doc%08d" % n))
print(total)
