"""Search index in one file: workers answer under a shared lock, the indexer adds under an exclusive one."""
import fcntl
import os
import random
import time

BLOCK, BLOCKS = 65536, 512


def worker(seed):
    r = random.Random(seed)
    fd = os.open("index", os.O_RDONLY)
    lock = os.open("index.lock", os.O_RDWR)
    end, answers = time.time() + 4, 0
    while time.time() < end:
        fcntl.flock(lock, fcntl.LOCK_SH)
        os.pread(fd, 4096, r.randrange(BLOCKS) * BLOCK)
        fcntl.flock(lock, fcntl.LOCK_UN)
        answers += 1
        time.sleep(0.002)
    print(f"worker {seed}: {answers} answers", flush=True)


def indexer():
    r = random.Random(0)
    fd = os.open("index", os.O_RDWR)
    lock = os.open("index.lock", os.O_RDWR)
    for _ in range(6):
        fcntl.flock(lock, fcntl.LOCK_EX)
        documents = r.randbytes(BLOCK)
        for n in range(BLOCKS):
            os.pwrite(fd, documents, n * BLOCK)
        os.fsync(fd)
        time.sleep(0.25)  # tells the replica, waits for its answer
        fcntl.flock(lock, fcntl.LOCK_UN)
        time.sleep(0.1)


for name in ("index", "index.lock"):
    with open(name, "wb") as f:
        f.write(bytes(BLOCK * BLOCKS if name == "index" else 0))
children = []
for job in (indexer, lambda: worker(1), lambda: worker(2), lambda: worker(3)):
    pid = os.fork()
    if not pid:
        job()
        os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
