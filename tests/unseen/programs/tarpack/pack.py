"""Packs a source tree into a compressed tar, put in place when it is complete and durable."""
import os, tarfile

tmp, dst = "tree.tar.gz.part", "tree.tar.gz"
with open(tmp, "wb", buffering=1 << 18) as out:
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        tar.add("tree")
    out.flush()
    os.fsync(out.fileno())
os.rename(tmp, dst)
d = os.open(".", os.O_RDONLY)
os.fsync(d)
os.close(d)
