/usr/bin/python3 - <<'P'
import lmdb, os, random
env = lmdb.open("index", map_size=1 << 30, sync=False)
blob = os.urandom(2000000)
with env.begin(write=True) as txn:
    for n in range(140000):
        txn.put(b"doc%08d" % n, blob[n * 7 % 1900000:][:1700], append=True)
env.sync(True)
P
