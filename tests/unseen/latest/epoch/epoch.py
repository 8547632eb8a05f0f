"""One epoch over the training samples, in an order that differs from epoch to epoch."""
import os
import random
import sys
import zlib

SAMPLE = 16384


def batches(fd, order, size=64):
    for first in range(0, len(order), size):
        yield [os.pread(fd, SAMPLE, n * SAMPLE) for n in order[first : first + size]]


fd = os.open(sys.argv[1], os.O_RDONLY)
order = list(range(os.fstat(fd).st_size // SAMPLE))
random.Random(7).shuffle(order)
weight = 0
for batch in batches(fd, order):
    for sample in batch:
        weight = zlib.crc32(sample[:512], weight)
print(f"{len(order)} samples, weight {weight:08x}")
