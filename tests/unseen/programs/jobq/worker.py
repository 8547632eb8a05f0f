"""Workers take jobs from a list in a file; a lock file keeps them apart."""
import os, time, hashlib

def lock():
    while True:
        try:
            os.close(os.open("queue.lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            return
        except FileExistsError:
            time.sleep(0.01)

def unlock():
    os.unlink("queue.lock")

def take():
    lock()
    try:
        fd = os.open("queue.pos", os.O_RDWR | os.O_CREAT)
        pos = int(os.pread(fd, 16, 0) or b"0")
        time.sleep(0.008)                    # choosing the job
        os.pwrite(fd, b"%08d" % (pos + 1), 0)
        os.close(fd)
        return pos
    finally:
        unlock()

def worker():
    while True:
        job = take()
        if job >= 100:
            os._exit(0)
        hashlib.sha256(str(job).encode() * 100000).hexdigest()

for _ in range(4):
    if os.fork() == 0:
        worker()
for _ in range(4):
    os.wait()
