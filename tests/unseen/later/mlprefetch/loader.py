"""Feeds shuffled samples of a packed data set to a model; workers read ahead of it."""
import os, queue, random, threading, zlib

SAMPLE, BATCH, WORKERS = 24 << 10, 32, 24


def index(fd):
    count = os.fstat(fd).st_size // SAMPLE
    order = list(range(count))
    random.Random(11).shuffle(order)
    return order


class Loader:
    def __init__(self, path):
        self.fd = os.open(path, os.O_RDONLY)
        self.todo = queue.Queue()
        self.ready = queue.Queue(maxsize=BATCH * 8)
        order = index(self.fd)
        self.count = len(order)
        for no in order:
            self.todo.put(no)
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(WORKERS)]
        for t in self.threads:
            t.start()

    def work(self):
        while True:
            try:
                no = self.todo.get_nowait()
            except queue.Empty:
                return
            self.ready.put((no, os.pread(self.fd, SAMPLE, no * SAMPLE)))

    def batches(self):
        left = self.count
        while left:
            n = min(BATCH, left)
            yield [self.ready.get() for _ in range(n)]
            left -= n


total = samples = 0
for batch in Loader("samples.pack").batches():
    for no, data in batch:
        assert len(data) == SAMPLE
        total ^= zlib.crc32(data)
        samples += 1
print(samples, "samples", hex(total))
