"""Stages parts of an upload on disk, then sends them; staged data shall not fill the page cache."""
import os, random, socket, threading

PART = 16 << 20
rnd = random.Random(5)
block = rnd.randbytes(1 << 20)

def stage(no):
    path = f"stage/part{no:03d}"
    with open(path, "wb", buffering=0) as f:
        for i in range(PART >> 20):
            f.write(block)
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path

def sink(conn):
    got = 0
    while True:
        b = conn.recv(1 << 18)
        if not b:
            break
        got += len(b)
    print("received", got)

os.makedirs("stage", exist_ok=True)
here, there = socket.socketpair()
t = threading.Thread(target=sink, args=(there,))
t.start()
for no in range(10):
    path = stage(no)
    with open(path, "rb", buffering=0) as f:
        here.sendfile(f)
    os.unlink(path)
here.close()
t.join()
