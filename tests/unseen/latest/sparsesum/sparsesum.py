"""Checksum of the data of an image and of where it lies."""
import errno
import hashlib
import os
import sys


def extents(fd, size):
    at = 0
    while at < size:
        try:
            start = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        at = os.lseek(fd, start, os.SEEK_HOLE)
        yield start, at


fd = os.open(sys.argv[1], os.O_RDONLY)
size = os.fstat(fd).st_size
digest = hashlib.sha256(b"%d" % size)
for start, end in extents(fd, size):
    digest.update(b"%d-%d" % (start, end))
    while start < end:
        data = os.pread(fd, min(1 << 20, end - start), start)
        digest.update(data)
        start += len(data)
print(digest.hexdigest())
